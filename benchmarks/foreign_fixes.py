"""Whether the fixes that irscope offers for foreign programs do what they say.

    python benchmarks/foreign_fixes.py RESULTS.json FOLDER [--python INTERPRETER] [--out FIXES.json]

RESULTS.json is what `foreign.py` wrote for FOLDER.  Each fix with edits is applied to a copy of its script, alone, and
the copy runs under PyTorch's own logs.  A fix did what it says if fewer lines break (or fewer compiles are
recompilations) than before, and the script does not end with another error.  A failed assertion counts as no other
error: PyTorch's tests count graphs, and the fix changes their number.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from foreign import asked, user_lines

HERE = Path(__file__).parent
KINDS = {"graph-break": "breaks", "recompilation": "recompilations"}
ERROR = re.compile(r"^(?!AssertionError)([\w.]+(?:Error|Exception|Unsupported)\b.*)$", re.MULTILINE)


def main() -> None:
    parser = argparse.ArgumentParser(description="Applies fixes to foreign programs.")
    parser.add_argument("results", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    oracle = subprocess.Popen(
        [arguments.python, str(HERE / "foreign_oracle.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    judged = []
    with tempfile.TemporaryDirectory() as folder:
        for result in json.loads(arguments.results.read_text()):
            script = arguments.folder / result["script"]
            for finding in result["findings"]:
                for fix in finding["fixes"]:
                    here = (fix["file"] or finding["file"]) == str(script.resolve())
                    if finding["kind"] in KINDS and here and fix["edits"]:
                        judged.append(followed(oracle, script, result, finding, fix, Path(folder)))
                        print(f"{'ok ' if judged[-1]['did'] else 'NOT'} {judged[-1]['what']}", flush=True)
    oracle.stdin.close()  # type: ignore[union-attr]
    if arguments.out:
        arguments.out.write_text(json.dumps(judged, indent=1))
    print(f"{len(judged)} fixes, {sum(each['did'] for each in judged)} did what they say")


def followed(
    oracle: subprocess.Popen[str],
    script: Path,
    result: dict[str, Any],
    finding: dict[str, Any],
    fix: dict[str, Any],
    folder: Path,
) -> dict[str, Any]:
    """What became of a script with one fix applied."""
    copy = folder / script.name
    copy.write_text(edited(script.read_text(), fix["edits"]))
    log = asked(oracle, copy)
    lines = {places[0] for record in log["breaks"] if (places := user_lines(record, str(copy.resolve())))}
    counts = {"breaks": len(lines), "recompilations": len(log["recompilations"])}
    before = {"breaks": len(result["breaks"]), "recompilations": result["recompilations"]}
    measure = KINDS[finding["kind"]]
    errors = sorted(set(ERROR.findall(log["tail"])) - set(ERROR.findall(result["log"]["tail"])))
    return {
        "script": script.name,
        "finding": finding,
        "fix": fix,
        "before": before,
        "after": counts,
        "errors": errors,
        "text": copy.read_text(),
        "did": counts[measure] < before[measure] and not errors,
        "what": f"{script.name}:{finding['range']['start']['line']} {finding['code']} {fix['title']!r} "
        f"{before} -> {counts} {errors or ''}",
    }


def edited(source: str, edits: list[dict[str, Any]]) -> str:
    """A text with edits applied; those at one place in their order."""
    starts = [0]
    for line in source.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    spans: dict[tuple[int, int], list[str]] = defaultdict(list)
    for edit in edits:
        start, end = (starts[edit["range"][at]["line"] - 1] + edit["range"][at]["column"] for at in ("start", "end"))
        spans[start, end].append(edit["text"])
    for (start, end), texts in sorted(spans.items(), reverse=True):
        source = source[:start] + "".join(texts) + source[end:]
    return source


if __name__ == "__main__":
    main()
