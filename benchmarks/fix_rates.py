"""How many breaks and recompilations of `fix_set` have a verified fix, and whether those fixes hold under a stronger test.

    python benchmarks/fix_rates.py [NAME…] [--part 2/4] [--set fix_models] [--out RESULTS.json]
    python benchmarks/fix_rates.py --read RESULTS.json…

Each script of `fix_set` has a ``target`` (a function or a module) and ``make(size, dtype)``, which makes its arguments.
`irscope fix` works on the script.  Then the script with each verified fix, alone, and with all of them together, is
compared with the original in plain eager mode: other seeds, sizes and dtypes, training and evaluation, results, changed
arguments, gradients and the state of the generators.  A fix that differs there, but was called verified, is wrong.

The scripts of `fix_models` need packages, as their first lines say ("Needs transformers."), in the interpreter that runs
this.  The models are tiny, and their weights random.  Scripts whose packages are missing are left out, and named.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "compiler"), str(HERE.parent / "server")]

from irscope.driver.driver import RunSpec  # noqa: E402
from irscope.driver.fixing.proving import Prover, Status  # noqa: E402
from irscope.driver.fixing.texts import applied  # noqa: E402
from irscope.driver.fixing.trying import Trying  # noqa: E402
from irscope.worker.client import Worker  # noqa: E402
from irscope_server.fixing.proposals import proposals  # noqa: E402
from stronger import differences, differences_apart  # noqa: E402

SCRIPTS = HERE / "fix_set"
KINDS = ("graph-break", "recompilation")


def main() -> None:
    parser = argparse.ArgumentParser(description="Rates of verified fixes.")
    parser.add_argument("names", nargs="*", help="scripts of fix_set by name; without any, all")
    parser.add_argument("--set", choices=("fix_set", "fix_models"), default="fix_set")
    parser.add_argument("--part", default="1/1", help="K/N: the Kth of N parts of the scripts")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--read", nargs="+", type=Path, help="print the rates of results that were written")
    arguments = parser.parse_args()
    if arguments.read:
        results = [one for path in arguments.read for one in json.loads(path.read_text())]
    else:
        results = measured(arguments)
    report(results)


def measured(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    part, parts = map(int, arguments.part.split("/"))
    folder = HERE / arguments.set
    paths = [folder / f"{name}.py" for name in arguments.names] or sorted(folder.glob("*.py"))
    for path in [path for path in paths if missing_package(path)]:
        print(f"{path.stem} is left out: {missing_package(path)} is not installed")
        paths.remove(path)
    worker = Worker(sys.executable)
    worker.wait_until_ready(90)
    results = []
    try:
        for path in paths[part - 1 :: parts]:
            results.append(of_script(path, worker))
            print(line(results[-1]), flush=True)
            if arguments.out:
                arguments.out.write_text(json.dumps(results, indent=1))
    finally:
        worker.stop()
    return results


def missing_package(path: Path) -> str:
    """A package that the first line of a script says it needs, if it is not installed; else nothing."""
    needed = re.search(r"Needs (\w+)", path.read_text().split("\n", 1)[0])
    return needed[1] if needed is not None and importlib.util.find_spec(needed[1]) is None else ""


def of_script(path: Path, worker: Worker) -> dict[str, Any]:
    """What `irscope fix` made of a script, and what the stronger test says of it."""
    seconds, differ = (120, differences) if path.parent == SCRIPTS else (200, differences_apart)
    began = time.monotonic()
    with Prover(RunSpec(str(path), cwd=str(path.parent)), worker) as prover:
        original = prover.begin()
        ready = time.monotonic()
        trying = Trying(prover, seconds, propose=proposals)
        found = [finding for finding in original.findings if finding.kind in KINDS]
        text, tried, changed = path.read_text(), [], {}
        first = None
        for finding in found:
            one = trying.finding(finding)
            best = one.candidates[0] if one.candidates else None
            verified = best is not None and best.proof.status is Status.VERIFIED
            if verified and best is not None:
                first = first or time.monotonic() - ready
                changed[best.title] = applied(text, best.edits)
            tried.append((one, verified))
        together = trying.together([one for one, _ in tried])
        whole = together.texts.get(str(path), text)
        if whole not in changed.values():
            changed["all together"] = whole
        gone = {f.cause for f in together.proof.removes} if together.proof is not None else set()
    return {
        "script": path.stem,
        "load": os.getloadavg()[0],
        "seconds": time.monotonic() - began,
        "first": first,
        "findings": [
            {
                "kind": one.finding.kind, "code": one.finding.code, "line": one.finding.range.start.line,
                "fixed": verified or one.finding.cause in gone,
                "candidates": [[c.title, c.proof.status.value, c.proof.reason] for c in one.candidates],
            }
            for one, verified in tried
        ],
        "wrong": {title: words for title, new in changed.items() if (words := differ(text, new))},
    }  # fmt: skip


def line(result: dict[str, Any]) -> str:
    fixed = [one["fixed"] for one in result["findings"]]
    words = f"{result['script']}: {sum(fixed)} of {len(fixed)} fixed, {result['seconds']:.1f} s"
    for one in result["findings"]:
        if not one["fixed"]:
            tried = "; ".join(f"{title}: {status}, {reason}" for title, status, reason in one["candidates"])
            words += f"\n    {one['code']} at line {one['line']}: {tried[:600] or 'no candidate'}"
    return words + "".join(f"\n    WRONG {title}: {text}" for title, text in result["wrong"].items())


def report(results: list[dict[str, Any]]) -> None:
    for kind in KINDS:
        found = [one["fixed"] for result in results for one in result["findings"] if one["kind"] == kind]
        print(f"{kind}: {sum(found)} of {len(found)} have a verified fix ({sum(found) / max(len(found), 1):.0%})")
    families: Counter[str] = Counter()
    fixed: Counter[str] = Counter()
    for result in results:
        family = result["script"].partition("_")[0]
        families[family] += len(result["findings"])
        fixed[family] += sum(one["fixed"] for one in result["findings"])
    print("; ".join(f"{family} {fixed[family]} of {count}" for family, count in sorted(families.items())))
    wrong = [f"{result['script']}: {title}" for result in results for title in result["wrong"]]
    print(f"{len(results)} scripts; {len(wrong)} verified fixes fail the stronger test: {'; '.join(wrong) or '-'}")
    times = sorted(result["first"] for result in results if result["first"] is not None)
    loads = sorted(result["load"] for result in results)
    if times:
        print(f"first verified fix after both runs of the original: median {times[len(times) // 2]:.1f} s, most {times[-1]:.1f} s "
              f"(load {loads[0]:.0f} to {loads[-1]:.0f})")  # fmt: skip


if __name__ == "__main__":
    main()
