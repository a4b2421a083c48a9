"""Whether the fast lane finds what a full run finds, or says that it may differ.

    python benchmarks/lanes.py [NAME…] [--set fix_set|fix_models|unseen_set|version_set] [--resume RESULTS.json] [--seconds 240]

Runs the scripts of these folders in both lanes; a name may also be the path of a script, which is then run, too.
Compared are how the run ended, the functions that were compiled and how, and the findings of the kinds that both lanes
have, with their places and counts.  Scripts that do not end in both lanes in the given time are named and not counted.
With `--resume`, results are kept in a file after each script, and those that are there already are not measured again,
unless irscope, the script or an installed package has changed since.  Exit code 1 if a fast run differs and did not say
that it may.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from fix_rates import HERE, a_worker, digest, kept, missing_package, tree
from irscope.driver.driver import RunSpec, execute
from irscope.findings.registry import all_kinds
from irscope.protocol import Budget, Lane, OutcomeKind, Report
from irscope.store.store import Store
from irscope.worker.client import Worker

SETS = ("fix_set", "fix_models", "unseen_set", "version_set")
BOTH = {kind.id for kind in all_kinds().values() if {Lane.FAST, Lane.DEEP} <= set(kind.lanes)}


def main() -> int:
    parser = argparse.ArgumentParser(description="Differences between the fast and the deep lane.")
    parser.add_argument("names", nargs="*", help="scripts by name or path; without any, all")
    parser.add_argument("--set", choices=SETS, help="without it, all")
    parser.add_argument("--resume", type=Path, metavar="FILE", help="keep results here, and go on with those it has")
    parser.add_argument("--seconds", type=float, default=240, help="for one run")
    options = parser.parse_args()
    paths = [path for name in ([options.set] if options.set else SETS) for path in sorted((HERE / name).glob("*.py"))]
    paths = [path for path in paths if path.stem in options.names or not options.names]
    paths += [Path(name).resolve() for name in options.names if name.endswith(".py")]
    left_out = [path.stem for path in paths if missing_package(path)]
    known = {(one["set"], one["script"], one["text"], one["tree"]): one for one in kept(options.resume)}
    results: list[dict[str, Any]] = []
    with a_worker() as worker:
        for path in paths:
            if path.stem in left_out:
                continue
            key = (path.parent.name, path.stem, digest([path]), tree())
            results.append(known.get(key) or compared(path, worker, options.seconds))
            if key not in known:
                print(line_of(results[-1]), file=sys.stderr, flush=True)
                if options.resume:
                    options.resume.write_text(json.dumps({"results": [*known.values(), *results]}, indent=1))
    return report(results, left_out)


def compared(path: Path, worker: Worker, seconds: float) -> dict[str, Any]:
    """What only one of the lanes has of a script, and what the fast one said about it."""
    with tempfile.TemporaryDirectory() as folder:
        fast, deep = (captured(path, lane, worker, folder, seconds) for lane in (Lane.FAST, Lane.DEEP))
    found = [facts(one) for one in (fast, deep)]
    return {
        "script": path.stem, "text": digest([path]), "tree": tree(), "set": path.parent.name,
        "in_time": all(one.outcome.kind is not OutcomeKind.BUDGET for one in (fast, deep)),
        "only_fast": sorted((found[0] - found[1]).elements()), "only_deep": sorted((found[1] - found[0]).elements()),
        "may_differ": list(fast.may_differ), "seconds": [one.outcome.seconds for one in (fast, deep)],
    }  # fmt: skip


def captured(path: Path, lane: Lane, worker: Worker, folder: str, seconds: float) -> Report:
    """The report of a run."""
    with Store(f"{folder}/{lane.value}.db") as store:
        spec = RunSpec(str(path), (), lane, cwd=folder, budget=Budget(seconds=seconds))
        run, _ = execute(spec, store, worker=worker)
        return store.report(run)


def facts(report: Report) -> Counter[str]:
    """What both lanes must have, as lines of text."""
    found = Counter([f"run: {report.outcome.kind.value}"])
    found.update(f"compile of {one.title}: {one.outcome.value}" for one in report.compiles)
    found.update(
        f"{one.code} at {Path(one.file).name}:{one.range.start.line}, {one.count} times"
        for one in report.findings if one.kind in BOTH
    )  # fmt: skip
    return found


def line_of(result: dict[str, Any]) -> str:
    """What came of a script, in words."""
    words = f"{result['script']}: {verdict(result)}, {result['seconds'][0]:.1f} s and {result['seconds'][1]:.1f} s"
    words += "".join(f"\n    only in the fast lane: {fact}" for fact in result["only_fast"])
    words += "".join(f"\n    only in the deep lane: {fact}" for fact in result["only_deep"])
    return words + "".join(f"\n    said: {why}" for why in result["may_differ"])


def verdict(result: dict[str, Any]) -> str:
    """How the lanes of a script compare."""
    if not result["in_time"]:
        return "not done in time"
    if not result["only_fast"] and not result["only_deep"]:
        return "alike"
    return "differs, as it said" if result["may_differ"] else "DIFFERS"


def report(results: list[dict[str, Any]], left_out: list[str]) -> int:
    """Prints the numbers by set."""
    for name in dict.fromkeys(one["set"] for one in results):
        verdicts = Counter(verdict(one) for one in results if one["set"] == name)
        counts = ", ".join(f"{count} {words}" for words, count in sorted(verdicts.items()))
        print(f"{name}: {verdicts.total()} scripts, {counts}")
    verdicts = Counter(map(verdict, results))
    said = sum(bool(one["may_differ"]) for one in results)
    print(f"all: {len(results)} scripts, {dict(verdicts)}; {said} fast runs said that they may differ")
    for words, names in (
        ("differs", [one["script"] for one in results if verdict(one) == "DIFFERS"]),
        ("not done in time", [one["script"] for one in results if not one["in_time"]]),
        ("left out, a package is missing", left_out),
    ):
        if names:
            print(f"{words}: {', '.join(names)}")
    return int(verdicts["DIFFERS"] > 0)


if __name__ == "__main__":
    sys.exit(main())
