"""How many breaks and recompilations have a verified fix, and whether those fixes hold under a stronger test.

    python benchmarks/fix_rates.py --resume RESULTS.json [NAME…] [--set fix_set|fix_models|first|kept] [--part 2/4] [--timeout 900]
    python benchmarks/fix_rates.py --read RESULTS.json… [--json]

Each script of `fix_set` has a ``target`` (a function or a module) and ``make(size, dtype)``, which makes its arguments.
`irscope fix` works on the script.  Then the script with each verified fix, alone, and with all of them together, is
compared with the original in plain eager mode: other seeds, sizes and dtypes, training and evaluation, results, changed
arguments, gradients and the state of the generators.  A fix that differs there, but was called verified, is wrong.

The scripts of `fix_models` need packages, as their first lines say ("Needs transformers."), in the interpreter that runs
this.  The models are tiny, and their weights random.  Scripts whose packages are missing are left out, and named.

The scripts of `unseen_set` are after public reports, which `truth.json` names with what is right.  The ``first`` half was
looked at after it had been measured; of the ``kept`` half nobody looked at any result before the rules were done.  They
are run as a whole: what they print, and all that their names stand for at the end, must be the same.

Without `--set` the first two are measured.  With `--resume`, results are kept in a file after each script, and those that are
there already are not measured again, unless irscope, the script or an installed package has changed since.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "compiler"), str(HERE.parent / "server")]

from irscope.driver.driver import RunSpec  # noqa: E402
from irscope.driver.fixing.candidates import Candidate, Tried  # noqa: E402
from irscope.driver.fixing.combining import combined  # noqa: E402
from irscope.driver.fixing.trying import Trying  # noqa: E402
from irscope.driver.trials.proving import Prover  # noqa: E402
from irscope.fixing.texts import applied  # noqa: E402
from irscope.worker.client import Worker  # noqa: E402
from stronger import differences, differences_apart, differences_of_runs  # noqa: E402

SCRIPTS = HERE / "fix_set"
OWN = ("fix_set", "fix_models")
SETS = (*OWN, "first", "kept")
TESTS = {
    "fix_set": (120, differences),
    "fix_models": (400, differences_apart),
    "unseen_set": (150, differences_of_runs),
}
"""By folder: seconds for a script's trials, and the stronger test."""
KINDS = ("graph-break", "recompilation")
PACKAGES = ("torch", "numpy", "transformers", "timm")
"""Whose versions a result depends on."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Rates of verified fixes.")
    parser.add_argument("names", nargs="*", help="scripts by name; without any, all")
    parser.add_argument("--set", choices=SETS, help="without it, the first two")
    parser.add_argument("--part", default="1/1", help="K/N: the Kth of N parts of the scripts")
    parser.add_argument("--timeout", type=float, default=900, help="seconds that one script may take")
    parser.add_argument(
        "--resume", type=Path, metavar="FILE", help="keep results here, and go on with those that it has"
    )
    parser.add_argument("--read", nargs="+", type=Path, metavar="FILE", help="print the rates of kept results")
    parser.add_argument("--json", action="store_true", help="print the rates as JSON at the end")
    arguments = parser.parse_args()
    if arguments.read:
        results = [one for path in arguments.read for one in json.loads(path.read_text())["results"]]
        if len({one["tree"] for one in results}) > 1:
            sys.exit("The results are of different states of irscope: measure again with --resume.")
        left_out: list[str] = []
    else:
        results, left_out = measured(arguments)
    print(json.dumps(rates(results), indent=1)) if arguments.json else report(results, left_out)


def measured(arguments: argparse.Namespace) -> tuple[list[dict[str, Any]], list[str]]:
    """The results of all chosen scripts, and the names of those whose packages are missing."""
    chosen = chosen_scripts(arguments)
    left_out = [f"{path.stem} ({missing_package(path)} is not installed)" for path in chosen if missing_package(path)]
    paths = [path for path in chosen if not missing_package(path)]
    known = {one["script"]: one for one in kept(arguments.resume)}
    results = [known[path.stem] for path in paths if is_current(known.get(path.stem), path)]
    todo = [path for path in paths if path.stem not in {one["script"] for one in results}]
    print(f"{len(results)} results are kept, {len(todo)} scripts are measured", file=sys.stderr, flush=True)
    if todo:
        with a_worker() as worker:
            for path in todo:
                results.append(of_script(path, worker, arguments.timeout))
                print(line(results[-1]), file=sys.stderr, flush=True)
                keep(arguments.resume, results)
    return results, left_out


def chosen_scripts(arguments: argparse.Namespace) -> list[Path]:
    """The chosen part of the chosen scripts.  Exits if a name is not one of them."""
    every = [path for folder in TESTS for path in sorted((HERE / folder).glob("*.py"))]
    every = [path for path in every if set_of(path) in ([arguments.set] if arguments.set else OWN)]
    unknown = sorted(set(arguments.names) - {path.stem for path in every})
    if unknown:
        sys.exit(f"No script is called {', '.join(unknown)}.")
    part = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", arguments.part)
    if part is None or int(part[1]) > int(part[2]):
        sys.exit(f"--part is {arguments.part}, not like 2/4.")
    wanted = [path for path in every if path.stem in arguments.names or not arguments.names]
    return wanted[int(part[1]) - 1 :: int(part[2])]


def set_of(path: Path) -> str:
    """The set of a script: its folder, or the half of the unseen ones."""
    return path.stem.partition("_")[0] if path.parent.name == "unseen_set" else path.parent.name


@contextlib.contextmanager
def a_worker() -> Iterator[Worker]:
    """A worker of this interpreter."""
    worker = Worker(sys.executable)
    try:
        worker.wait_until_ready(90)
        yield worker
    finally:
        worker.stop()


def missing_package(path: Path) -> str:
    """A package that the first line of a script says it needs, if it is not installed; else nothing."""
    needed = re.search(r"Needs (\w+)", path.read_text().split("\n", 1)[0])
    return needed[1] if needed is not None and importlib.util.find_spec(needed[1]) is None else ""


# --- results that are kept --------------------------------------------------------------------------------------------


def kept(path: Path | None) -> list[dict[str, Any]]:
    """The results in a file; none if there is no file."""
    if path is None or not path.exists():
        return []
    return list(json.loads(path.read_text())["results"])


def keep(path: Path | None, results: Sequence[dict[str, Any]]) -> None:
    """Writes results with their rates, so that a killed process leaves a whole file."""
    if path is not None:
        part = path.with_name(f"{path.name}.part")
        part.write_text(json.dumps({"rates": rates(results), "results": results}, indent=1))
        part.replace(path)


def is_current(result: dict[str, Any] | None, path: Path) -> bool:
    """Whether a result was made by this state of irscope and of the script, and in time."""
    return (
        result is not None and not result["timed_out"] and (result["tree"], result["text"]) == (tree(), digest([path]))
    )


@functools.cache
def tree() -> str:
    """A digest of all that a result depends on but its script: irscope, this measurement, and what is installed."""
    root = HERE.parent
    files = [HERE / "fix_rates.py", HERE / "stronger.py"]
    files += sorted((root / "compiler").rglob("*.py")) + sorted((root / "server").rglob("*.py"))
    versions = [f"{name} {_version(name)}" for name in PACKAGES]
    return digest(files, " ".join([sys.version, *versions]))


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "-"


def digest(paths: Sequence[Path], words: str = "") -> str:
    """Of the names and texts of files."""
    made = hashlib.sha256(words.encode())
    for path in paths:
        data = path.read_bytes()
        made.update(f"{os.path.relpath(path, HERE.parent)} {len(data)} ".encode() + data)
    return made.hexdigest()[:16]


# --- one script -------------------------------------------------------------------------------------------------------


def of_script(path: Path, worker: Worker, timeout: float = 900) -> dict[str, Any]:
    """What `irscope fix` made of a script, and what the stronger test says of it."""
    seconds, differ = TESTS[path.parent.name]
    began, cancel = time.monotonic(), threading.Event()
    timer = threading.Timer(timeout, cancel.set)
    timer.start()
    try:
        with Prover(RunSpec(str(path), cwd=str(path.parent)), worker, cancel) as prover:
            original = prover.begin()
            ready = time.monotonic()
            trying = Trying(prover, min(seconds, timeout))
            text, tried, first = path.read_text(), list[Tried](), None
            for finding in (one for one in original.findings if one.kind in KINDS):
                tried.append(trying.finding(finding))
                if first is None and tried[-1].verified is not None:
                    first = time.monotonic() - ready
            together = combined(trying, tried)
    finally:
        timer.cancel()
    changed = {best.fix.title: applied(text, best.fix.edits) for one in tried for best in _verified(one)}
    whole = together.texts.get(str(path), text)
    if whole not in changed.values():
        changed["all together"] = whole
    gone = {f.cause for f in together.proof.removes} if together.proof is not None else set()
    return {
        "script": path.stem, "set": set_of(path), "tree": tree(), "text": digest([path]),
        "load": os.getloadavg()[0], "seconds": time.monotonic() - began, "first": first, "timed_out": cancel.is_set(),
        "findings": [_finding(one, one.finding.cause in gone) for one in tried],
        "wrong": {title: words for title, new in changed.items() if (words := differ(text, new))},
    }  # fmt: skip


def _verified(one: Tried) -> Iterator[Candidate]:
    yield from (best for best in (one.verified, one.left_to_python) if best is not None)


def _finding(one: Tried, is_gone: bool) -> dict[str, Any]:
    """A finding: whether it is repaired, by a fix of its own or with all others; and whether it is gone if what only
    leaves code to Python counts, too."""
    repaired = one.verified is not None or is_gone
    return {
        "kind": one.finding.kind, "code": one.finding.code, "line": one.finding.range.start.line,
        "fixed": repaired, "gone": is_gone, "with_plain": repaired or one.left_to_python is not None,
        "candidates": [[c.fix.title, c.proof.status.value, c.proof.reason] for c in one.candidates],
    }  # fmt: skip


# --- what is printed --------------------------------------------------------------------------------------------------


def line(result: dict[str, Any]) -> str:
    """What came of a script, in words."""
    fixed = [one["fixed"] for one in result["findings"]]
    words = f"{result['script']}: {sum(fixed)} of {len(fixed)} repaired, {result['seconds']:.1f} s"
    words += " (not done in time)" if result["timed_out"] else ""
    for one in result["findings"]:
        if not one["fixed"]:
            tried = "; ".join(f"{title}: {status}, {reason}" for title, status, reason in one["candidates"])
            words += f"\n    {one['code']} at line {one['line']}: {tried[:600] or 'no candidate'}"
    return words + "".join(f"\n    WRONG {title}: {text}" for title, text in result["wrong"].items())


def rates(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """By set, and of the first two: by kind the findings, those with a repair, those that are gone if code that is left to
    Python counts, too, and the scripts that have such findings, and have none with all verified fixes together."""
    made: dict[str, Any] = {}
    names = [name for name in SETS if any(result["set"] == name for result in results)]
    for name in [*names, "both"] if set(OWN) & set(names) else names:
        chosen = [result["findings"] for result in results if result["set"] in (OWN if name == "both" else [name])]
        made[name] = {}
        for kind in KINDS:
            of_scripts = [found for of_result in chosen if (found := [one for one in of_result if one["kind"] == kind])]
            found = [one for of_script in of_scripts for one in of_script]
            made[name][kind] = {
                "findings": len(found), "repaired": sum(one["fixed"] for one in found),
                "with_plain_python": sum(one["with_plain"] for one in found), "scripts": len(of_scripts),
                "free": sum(all(one["gone"] for one in of_script) for of_script in of_scripts),
            }  # fmt: skip
    made["scripts"] = len(results)
    made["wrong"] = [f"{result['script']}: {title}" for result in results for title in result["wrong"]]
    made["timed_out"] = [result["script"] for result in results if result["timed_out"]]
    return made


def report(results: Sequence[dict[str, Any]], left_out: Sequence[str]) -> None:
    """Prints the rates."""
    found = rates(results)
    for name in (name for name in (*SETS, "both") if name in found):
        for kind, one in found[name].items():
            of, part = one["findings"], max(one["findings"], 1)
            print(f"{name}, {kind}: {one['repaired']} of {of} have a verified repair ({one['repaired'] / part:.1%}), "
                  f"{one['with_plain_python']} with what is left to Python ({one['with_plain_python'] / part:.1%}); "
                  f"{one['free']} of {one['scripts']} scripts are free of them with all verified fixes")  # fmt: skip
    families: Counter[str] = Counter()
    fixed: Counter[str] = Counter()
    for result in results:
        family = result["script"].partition("_")[0] if result["set"] == "fix_set" else result["script"]
        families[family] += len(result["findings"])
        fixed[family] += sum(one["fixed"] for one in result["findings"])
    print("; ".join(f"{family} {fixed[family]} of {count}" for family, count in sorted(families.items())))
    print(
        f"{len(results)} scripts; {len(found['wrong'])} verified fixes fail the stronger test: {'; '.join(found['wrong']) or '-'}"
    )
    for words, names in (("not done in time", found["timed_out"]), ("left out", left_out)):
        if names:
            print(f"{words}: {', '.join(names)}")
    times = sorted(result["first"] for result in results if result["first"] is not None)
    loads = sorted(result["load"] for result in results)
    if times:
        print(f"first verified repair after both runs of the original: median {times[len(times) // 2]:.1f} s, most {times[-1]:.1f} s "
              f"(load {loads[0]:.0f} to {loads[-1]:.0f})")  # fmt: skip


if __name__ == "__main__":
    main()
