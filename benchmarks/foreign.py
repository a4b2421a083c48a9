"""Whether breaks and recompilations of programs that nobody here wrote are found where PyTorch's logs have them.

    python benchmarks/foreign.py FOLDER [--python INTERPRETER] [--out RESULTS.json] [--only PART] [--limit N]

FOLDER has scripts; they are not part of this project.  Each runs twice: under PyTorch's own logs
(`foreign_oracle.py`, which does not know irscope), and captured in the fast lane, in a fork of irscope's worker as in
the editor.  Compared are

- breaks: the line of the script that PyTorch's header names, or the innermost line of the script on its stack; a finding
  must be at that line, and each finding of a break must have such a line;
- recompilations: a finding must count the compile that PyTorch names, and each finding's compiles must be among those.
  The place of these findings is not compared, since PyTorch names no line but that of the ``def``.

A recompilation that PyTorch logs and then refuses (the recompile limit, ``error_on_recompile``) is found by the finding
that says so.  PyTorch leaves out breaks that it has logged before with the same text, so breaks are compared by line,
not by number.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from irscope.driver.driver import RunSpec, execute
from irscope.protocol import Budget, Finding, Lane, Report, to_json
from irscope.store.store import Store
from irscope.worker.client import Worker

HERE = Path(__file__).parent
SECONDS = 90


def main() -> None:
    arguments = _arguments()
    scripts = sorted(path for path in arguments.folder.glob("*.py") if arguments.only in path.name)[: arguments.limit]
    oracle = subprocess.Popen(
        [arguments.python, str(HERE / "foreign_oracle.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    worker = Worker(arguments.python)
    worker.wait_until_ready(120)
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for number, script in enumerate(scripts):
            log = asked(oracle, script)
            if os.WIFSIGNALED(log["exit"]) and os.WTERMSIG(log["exit"]) == signal.SIGALRM:
                print(f"{number + 1}/{len(scripts)} {script.name}: left out, it takes too long", flush=True)
                continue
            result = compared(script, log, captured(script, arguments.python, worker, folder))
            results.append(result)
            print(f"{number + 1}/{len(scripts)} {line_of(result)}", flush=True)
            if arguments.out:
                arguments.out.write_text(json.dumps(results, indent=1))
    worker.stop()
    oracle.stdin.close()  # type: ignore[union-attr]
    oracle.wait()
    print(total(results))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compares findings with PyTorch's logs.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--limit", type=int)
    return parser.parse_args()


def asked(oracle: subprocess.Popen[str], script: Path) -> dict[str, Any]:
    assert oracle.stdin and oracle.stdout
    oracle.stdin.write(f"{script.resolve()}\n")
    oracle.stdin.flush()
    answer: dict[str, Any] = json.loads(oracle.stdout.readline())
    return answer


def captured(script: Path, python: str, worker: Worker, folder: str) -> Report:
    """The report of a run in the fast lane."""
    with Store(f"{folder}/{script.stem}.db") as store:
        spec = RunSpec(str(script.resolve()), lane=Lane.FAST, python=python, budget=Budget(seconds=SECONDS))
        run, _ = execute(spec, store, on_output=lambda stream, text: None, worker=worker)
        return store.report(run)


def compared(script: Path, log: dict[str, Any], report: Report) -> dict[str, Any]:
    """What both say, what only one says."""
    path = str(script.resolve())
    breaks = [places for record in log["breaks"] if (places := user_lines(record, path))]
    found = [finding for finding in report.findings if finding.kind == "graph-break"]
    recompiles = Counter(base(record["compile"]) for record in log["recompilations"])
    again = [finding for finding in report.findings if finding.kind == "recompilation"]
    counted = Counter(base(each) for finding in again for each in finding.compiles)
    refused = Counter(after(base(f.compiles[-1])) for f in report.findings if f.kind == "recompile-limit")
    refused += Counter(base(each) for f in report.findings if f.code == "RecompileError" for each in f.compiles)
    return {
        "script": script.name,
        "exit": log["exit"],
        "outcome": to_json(report.outcome),
        "gaps": to_json(report.capture_gaps),
        "breaks": sorted({places[0] for places in breaks}),
        "recompilations": sum(recompiles.values()),
        "breaks_missed": sorted({p[0] for p in breaks if not any(at(finding, path, p) for finding in found)}),
        "breaks_false": [said(f) for f in found if not any(at(f, path, places) for places in breaks)],
        "recompilations_missed": list((recompiles - counted - refused).elements()),
        "recompilations_false": list((counted - recompiles).elements()),
        "findings": to_json(report.findings),
        "log": {name: log[name] for name in ("breaks", "recompilations", "tail")},
    }


def user_lines(record: dict[str, Any], path: str) -> list[int]:
    """The lines of the script that a break may be at.

    The header names the line of the frame that is compiled where the function that broke is a body of a higher-order
    operator; the traceback ends at the line in the body.  Where both are in the script, both are right.
    """
    header = [record["line"]] if record["file"] == path else []
    innermost = [line for file, line, _ in record["stack"] if file == path][-1:]
    return header + innermost


def at(finding: Finding, path: str, lines: list[int]) -> bool:
    span = range(finding.range.start.line, finding.range.end.line + 1)
    return finding.file == path and any(line in span for line in lines)


def after(compiling: str) -> str:
    """The name of a function's next compile; at the recompile limit PyTorch logs it, and it does not take place."""
    frame, _, number = compiling.partition("/")
    return f"{frame}/{int(number) + 1}"


def base(compiling: str) -> str:
    """A compile's name without what irscope adds after a reset."""
    return compiling.split("#")[0].split("_")[0]


def said(finding: Finding) -> str:
    return f"{finding.range.start.line}: {finding.code} {finding.message}"


def line_of(result: dict[str, Any]) -> str:
    wrong = {name: result[name] for name in WRONG if result[name]}
    return (
        f"{result['script']}: {len(result['breaks'])} breaks, {result['recompilations']} recompilations {wrong or ''}"
    )


WRONG = ("breaks_missed", "breaks_false", "recompilations_missed", "recompilations_false")


def total(results: list[dict[str, Any]]) -> str:
    counts = {name: sum(len(result[name]) for result in results) for name in WRONG}
    with_any = sum(bool(result["breaks"] or result["recompilations"]) for result in results)
    return (
        f"{len(results)} programs, {with_any} with a break or a recompilation: "
        f"{sum(len(result['breaks']) for result in results)} lines with breaks, "
        f"{sum(result['recompilations'] for result in results)} recompilations; {counts}"
    )


if __name__ == "__main__":
    main()
