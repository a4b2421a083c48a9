"""Whether the tests notice what is broken: ``python benchmarks/mutations.py [--count 400] [--seed 1] [--jobs 2]``.

Small changes of single lines are drawn from all rooms (mutants.py), and the tests that execute the line run until one
fails (tests_by_line.py), each in a scratch copy (mutation_copy.py).  The folder ``--work`` keeps the map of tests and the
results, one a line of JSON, so that the same command goes on where it was stopped.

``--tests 'not nightly'`` (the default) is the selection of `npm test`, ``--tests ''`` that of `npm run test:all`.
``--only results.jsonl`` takes the mutants that another run caught: those that are missed now are what a smaller selection
loses.  Needs the package coverage.  ``--under tests/plain`` looks at these tests alone.  ``--list`` prints the mutants.
"""

from __future__ import annotations

import argparse
import json
import queue
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from mutants import Mutant, make
from mutation_copy import ROOT, Copy
from tests_by_line import Map

T = TypeVar("T")
CAUGHT, SURVIVED, NOT_RUN = "caught", "survived", "not run"
START_SECONDS = 60
"""What a process of pytest may need beside its tests."""


def main(args: list[str]) -> int:
    """Draws mutants, maps the tests, runs what is not decided yet, and prints a table."""
    asked = parse(args)
    drawn = caught_in(asked.only) if asked.only else make(ROOT, asked.count, asked.seed)
    mutants = [mutant for mutant in drawn if any(mutant.room.startswith(room) for room in asked.rooms or [""])]
    if asked.list:
        for mutant in mutants:
            print(f"{mutant.file}:{mutant.line} ({mutant.kind})\n- {mutant.text.strip()}\n+ {mutant.changed.strip()}")
        return 0
    until = time.monotonic() + asked.seconds
    results = asked.work / "results.jsonl"
    with tempfile.TemporaryDirectory(prefix="irscope-mutations-", ignore_cleanup_errors=True) as folder:
        copies: queue.Queue[Copy] = queue.Queue()
        work_on(range(asked.jobs), lambda job: copies.put(Copy(Path(folder) / str(job), asked.python)), asked.jobs)
        tests = Map(asked.work)
        map_tests(tests, copies, asked, until)
        ran = {id for id, result in decided(results).items() if result["verdict"] != NOT_RUN}
        run_mutants([mutant for mutant in mutants if mutant.id not in ran], tests, copies, asked, until)
    done = decided(results)
    by_imports = sum(bool(result.get("by_imports")) for result in done.values())
    print(f"{by_imports} of these lines are executed by no test that was seen: the tests that import the module ran")
    print_table(mutants, {id: str(result["verdict"]) for id, result in done.items()})
    for mutant in mutants:
        if mutant.id in done and done[mutant.id]["verdict"] == SURVIVED:
            print(f"survived: {mutant.file}:{mutant.line}\n- {mutant.text.strip()}\n+ {mutant.changed.strip()}")
    return 0


def parse(args: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rooms", nargs="*", help="rooms to draw from, as compiler/irscope/store")
    parser.add_argument("--count", type=int, default=400, help="how many mutants are drawn from all rooms")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--tests", default="not nightly", help="the selection, as pytest's -m")
    parser.add_argument("--under", nargs="*", default=["tests/plain", "tests/worker", "tests/protocol"])
    parser.add_argument("--python", default=sys.executable, help="an interpreter with torch, pytest and coverage")
    parser.add_argument("--work", type=Path, default=ROOT / "out" / "mutations")
    parser.add_argument("--only", type=Path, help="results of another run, whose caught mutants are taken")
    parser.add_argument(
        "--limit", type=float, default=240, help="seconds for the tests of a mutant, or for a test file"
    )
    parser.add_argument("--seconds", type=float, default=1e9, help="begins nothing new after so many seconds")
    parser.add_argument("--list", action="store_true")
    return parser.parse_args(args)


def caught_in(results: Path) -> list[Mutant]:
    return [Mutant(**result["mutant"]) for result in decided(results).values() if result["verdict"] == CAUGHT]


def decided(results: Path) -> dict[str, dict[str, Any]]:
    """The results so far, by mutant."""
    lines = results.read_text(encoding="utf-8").splitlines() if results.exists() else []
    return {Mutant(**result["mutant"]).id: result for result in map(json.loads, lines)}


def map_tests(tests: Map, copies: queue.Queue[Copy], asked: argparse.Namespace, until: float) -> None:
    """Measures the test files that the map lacks; the slow tiers first, so that none is left to one process at the end."""
    paths = [path for under in asked.under for path in sorted({ROOT / under, *(ROOT / under).rglob("test_*.py")})]
    files = [path.relative_to(ROOT).as_posix() for path in paths if path.is_file()]
    files.sort(key=lambda file: file.startswith("tests/plain"))
    lock = threading.Lock()
    missing = [file for file in files if file not in tests.mapped and tests.tests.get(file) != {}]

    def measure(file: str) -> None:
        if time.monotonic() < until:
            copy = copies.get()
            try:
                print(tests.measure(copy, file, selection(asked), asked.limit, lock), flush=True)
            finally:
                copies.put(copy)

    work_on(missing, measure, asked.jobs)
    left = [file for file in files if file not in tests.mapped and tests.tests.get(file) != {}]
    print(f"{len(files) - len(left)} of {len(files)} test files are mapped", flush=True)


def run_mutants(
    mutants: list[Mutant], tests: Map, copies: queue.Queue[Copy], asked: argparse.Namespace, until: float
) -> None:
    """Runs the tests of each mutant and appends what came of it to the results."""
    lock = threading.Lock()

    def judge_next(mutant: Mutant) -> None:
        if time.monotonic() > until:
            return
        begun = time.monotonic()
        copy = copies.get()
        try:
            result = judge(mutant, tests, copy, selection(asked), asked.limit)
        finally:
            copies.put(copy)
        seconds = round(time.monotonic() - begun, 1)
        with lock, (asked.work / "results.jsonl").open("a", encoding="utf-8") as results:
            results.write(json.dumps({**result, "seconds": seconds, "mutant": mutant.as_json()}) + "\n")
        print(
            f"{result['verdict']:9} {seconds:6.1f} s  {mutant.file}:{mutant.line}  {str(result.get('by', ''))[:100]}",
            flush=True,
        )

    has_node = shutil.which("node") is not None
    work_on([mutant for mutant in mutants if has_node or mutant.file.endswith(".py")], judge_next, asked.jobs)


def judge(mutant: Mutant, tests: Map, copy: Copy, options: list[str], limit: float) -> dict[str, object]:
    """Breaks the line, runs its tests, and mends it."""
    source = (ROOT / mutant.file).read_text(encoding="utf-8")
    changed = mutant.apply(source)
    if changed is None:
        return {"verdict": NOT_RUN, "why": "the line has changed"}
    if mutant.file.endswith(".ts"):
        return judge_model(mutant, changed, source, copy, limit)
    chosen: list[str] = []
    seconds, left_out = 0.0, 0
    by_line = tests.tests_of(mutant, source)
    by_file = by_line or tests.tests_by_imports(mutant.file)
    for file, of_file in by_file.items():
        for test in of_file:
            seconds += tests.tests[file][test]
            if seconds < limit:
                chosen.append(test)
            else:
                left_out += 1
    if not chosen:
        return {"verdict": NOT_RUN, "why": "no test imports the module"}
    copy.write(mutant.file, changed)
    try:
        ended = copy.run(chosen, [*options, "-x"], 3 * min(seconds, limit) + START_SECONDS)
    finally:
        copy.write(mutant.file, source)
    counts: dict[str, object] = {"tests": len(chosen), "left_out": left_out, "by_imports": not by_line}
    if ended is None:
        return {"verdict": CAUGHT, "by": "pytest, which did not start or did not end", **counts}
    failed = [test for test, (outcome, _) in ended.items() if outcome == "failed"]
    if failed:
        return {"verdict": CAUGHT, "by": failed[0], **counts}
    return {"verdict": SURVIVED if ended else NOT_RUN, **counts}


def judge_model(mutant: Mutant, changed: str, source: str, copy: Copy, limit: float) -> dict[str, object]:
    """Runs the tests of models that load a module of TypeScript; those with a window are left to the editor tier."""
    module = mutant.file.removeprefix("extension/src/").removesuffix(".ts")
    models = sorted((ROOT / "tests" / "editor" / "models").glob("*.test.mjs"))
    chosen = [path for path in models if f'"{module}"' in path.read_text(encoding="utf-8")]
    if not chosen:
        return {"verdict": NOT_RUN, "why": "only the editor tier runs it"}
    copy.write(mutant.file, changed)
    try:
        passed = copy.run_mocha([path.relative_to(ROOT).as_posix() for path in chosen], limit)
    finally:
        copy.write(mutant.file, source)
    return {"verdict": SURVIVED if passed else CAUGHT, "by": chosen[0].name, "tests": len(chosen)}


def selection(asked: argparse.Namespace) -> list[str]:
    return ["-m", asked.tests] if asked.tests else []


def work_on(items: Iterable[T], work: Callable[[T], object], jobs: int) -> None:
    with ThreadPoolExecutor(jobs) as pool:
        for _ in pool.map(work, items):
            pass


def print_table(mutants: list[Mutant], verdicts: dict[str, str]) -> None:
    """A row a room."""
    rooms: dict[str, Counter[str]] = defaultdict(Counter)
    for mutant in mutants:
        for room in (mutant.room, "all"):
            rooms[room].update(["mutants", verdicts.get(mutant.id, NOT_RUN)])
    columns = ["mutants", CAUGHT, SURVIVED, NOT_RUN]
    print(f"\n{'room':40}" + "".join(f"{column:>10}" for column in columns))
    for room in [*sorted(set(rooms) - {"all"}), "all"]:
        print(f"{room:40}" + "".join(f"{rooms[room][column]:10}" for column in columns))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
