"""What irscope sees in several versions of torch, each in its own environment; not a part of `npm test`.

    npm run test:versions                                        all `VERSIONS`, and writes the table into docs/versions.md
    python scripts/compatibility.py own 2.9.1 2.15.0             makes the environments, runs, prints a table
    python scripts/compatibility.py 2.15.0@3.13                  with another Python, which is there as python3.13
    python scripts/compatibility.py 2.15.0=path/to/python …      takes environments that are there
    python scripts/compatibility.py … --write                    writes the table into docs/versions.md

For each version the capture tests run (tests/versions.py lists them; what they need is installed there, torch stays as
it is), and, under the checked-out irscope, two scripts in the deep lane and the cases in the fast lane: which stages
came, which hooks did not fit (the capture gaps), and how many of the cases' known graph breaks and recompilations were
found.  `own` is the torch that this script runs with, and the measure: a stage that it has and another version lacks
without a capture gap makes the exit code 1, as a test that fails does.

Versions may be run one at a time: the table keeps what it says of the others, and the measure is its first column where
`own` is not named.  `--only` runs the stages or the tests alone, and keeps the other half of a column.  Each module of
the tests has its own process and time limit (`--seconds`), two run at a time (`--processes`), and their reports
stay in out/capture; with `--resume` those that are there are taken instead of a new run (`--seconds 0`: no new run), and
with `--again` the tests that failed in one are run once more.  So the tests of a version can be run on another machine,
and the table made here: where out/capture has a folder of that name, `2.11.0+cu130 --only tests --resume --seconds 0`
needs no environment.  Without access to a package index, `--installed` takes what the tests need as it is there.

`--pytest` is handed to pytest.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import capture_tests
from capture_tests import How, Tests
from irscope.driver.environments import install_torch

ROOT = Path(__file__).resolve().parents[1]
CASES = ROOT / "tests" / "cases"
REPORTS = ROOT / "out" / "capture"
VERSIONS = ("own", "2.9.1", "2.11.0", "2.12.1", "2.14.1", "2.15.0", "2.14.1@3.10", "2.15.0@3.12", "2.15.0@3.13")
BREAKS = "graph breaks of the cases at their line"
RECOMPILES = "recompilations of the cases"
TESTS = "capture tests"
FIGURES = (BREAKS, RECOMPILES, TESTS)
MARK = ("<!-- made by scripts/compatibility.py -->", "<!-- end -->")

TRAINING = """\
import torch


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(16, 32), torch.nn.Linear(32, 16)

    def forward(self, x):
        h = self.second(torch.relu(self.first(x)))
        return torch.softmax(h + x, -1)


block = torch.compile(Block())
for size in (4, 6, 9):
    block(torch.randn(size, 16)).sum().backward()
with torch.no_grad():
    block(torch.randn(4, 16))
"""
AUTOGRAD = """\
import torch

torch._dynamo.config.compiled_autograd = True


@torch.compile
def step(x, w):
    loss = (x @ w).sin().sum()
    loss.backward()
    return loss


step(torch.randn(4, 4), torch.randn(4, 4, requires_grad=True))
"""


@dataclass(frozen=True)
class Seen:
    """What the scripts and the cases showed of a version.  ``outcome`` is empty if both scripts ran to their end."""

    stages: frozenset[str]
    gaps: frozenset[str]
    breaks: tuple[int, int]
    recompiles: tuple[int, int]
    outcome: str


def environment(spec: str, folder: Path) -> str:
    """The interpreter of a version, in a new virtual environment if none is named; PyTorch is there for the CPU alone, in
    the way of `irscope env create`."""
    named, _, python = spec.partition("=")
    if python:
        return python
    version, _, base = named.partition("@")
    home = folder / f"torch-{named}"
    python = str(home / "bin" / "python")
    if not (home / "made").exists():
        print(f"… making an environment with torch {named}", flush=True)
        subprocess.run([f"python{base}" if base else sys.executable, "-m", "venv", str(home)], check=True)
        install_torch(python, f"torch=={version}", ["numpy"], print)
        (home / "made").touch()
    return python


def run(python: str, script: Path, store: Path, lane: str) -> dict[str, Any]:
    """The report of a run, as `irscope run --json` gives it."""
    command = [sys.executable, "-m", "irscope", "run", str(script), "--lane", lane, "--json", "--budget", "300",
               "--python", python, "--store", str(store)]  # fmt: skip
    env = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(store.parent / "cache")}
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=script.parent)
    if not done.stdout.strip():
        raise SystemExit(f"irscope printed nothing for {script.name} in {python}:\n{done.stderr[-2000:]}")
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def look(python: str, folder: Path) -> Seen:
    stages: set[str] = set()
    gaps: set[str] = set()
    outcome = ""
    for name, text in (("training", TRAINING), ("autograd", AUTOGRAD)):
        script = folder / f"{name}.py"
        script.write_text(text)
        report = run(python, script, folder / "runs.db", "deep")
        stages |= {stage["name"] for compile in report["compiles"] for stage in compile["stages"]}
        stages |= {"versions per pass" for c in report["compiles"] for stage in c["stages"] if stage.get("passed")}
        gaps |= {gap["what"] for gap in report["capture_gaps"]}
        if report["outcome"]["kind"] != "completed":
            outcome = f"{name}: {report['outcome']['message']}"
    breaks, recompiles = [0, 0], [0, 0]
    for truth in sorted((CASES / "truth").glob("*.json")):
        expected = json.loads(truth.read_text())
        report = run(python, CASES / "scripts" / f"{truth.stem}.py", folder / "runs.db", "fast")
        gaps |= {gap["what"] for gap in report["capture_gaps"]}
        found = {(f["kind"], os.path.basename(f["file"]), f["range"]["start"]["line"]) for f in report["findings"]}
        for entry in expected.get("breaks", ()):
            breaks[1] += 1
            breaks[0] += ("graph-break", os.path.basename(entry["file"]), entry["line"]) in found
        wanted = len(expected.get("recompiles", ()))
        recompiles[1] += wanted
        kinds = ("recompilation", "recompile-limit")  # the last one of a function is its limit
        recompiles[0] += min(wanted, sum(f["count"] for f in report["findings"] if f["kind"] in kinds))
    return Seen(frozenset(stages), frozenset(gaps), tuple(breaks), tuple(recompiles), outcome)  # type: ignore[arg-type]


GAPS, FAIL, UNFINISHED = (
    "Capture gaps",
    "Capture tests that fail",
    "Modules of capture tests that did not come to their end",
)


@dataclass
class Column:
    """A version in the page: its cell in each row, and the lists below the table: the beginning of the title → items."""

    cells: dict[str, str]
    lists: dict[str, list[str]]

    @property
    def stages(self) -> set[str]:
        return {name for name, cell in self.cells.items() if name not in FIGURES and cell == "yes"}

    def show(self, seen: Seen) -> None:
        self.cells = {TESTS: self.cells[TESTS]} if TESTS in self.cells else {}
        self.cells |= dict.fromkeys(sorted(seen.stages), "yes")
        self.cells[BREAKS], self.cells[RECOMPILES] = (
            f"{found}/{all_}" for found, all_ in (seen.breaks, seen.recompiles)
        )
        self.lists[GAPS] = sorted(seen.gaps)

    def tell(self, tests: Tests) -> None:
        counts = [f"{tests.passed} pass", f"{len(tests.failed)} fail", f"{len(tests.left_out)} not applicable"]
        if tests.unfinished:
            counts.append(f"{len(tests.unfinished)} modules not finished")
        self.cells[TESTS] = ", ".join(counts)
        self.lists[FAIL] = [f"`{name}`: {why}" for name, why in tests.failed]
        self.lists[UNFINISHED] = [f"`{name}`" for name in tests.unfinished]


def columns_of(page: str) -> dict[str, Column]:
    """Version → column, of the table that the page has."""
    made = page.partition(MARK[0])[2].partition(MARK[1])[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in made.split("\n") if line.startswith("|")]
    if not rows:
        return {}
    columns = {version: Column({}, {}) for version in rows[0][1:]}
    for names, *cells in rows[2:]:
        for one, cell in zip(columns.values(), cells, strict=True):
            one.cells |= dict.fromkeys(names.split(", "), cell)
    for title, items in re.findall(rf"^({GAPS}|{FAIL}|{UNFINISHED}):\n\n((?:- .*\n)+)", made, re.MULTILINE):
        for item, versions in re.findall(r"^- (.*) \(([^()\n]+)\)$", items, re.MULTILINE):
            for version in filter(columns.__contains__, versions.split(", ")):
                columns[version].lists.setdefault(title, []).append(item)
    return columns


def table(columns: dict[str, Column]) -> list[str]:
    """Markdown: a row for stages with the same cells and for each figure, a column per version; the first is the
    measure."""
    stages: dict[tuple[str, ...], list[str]] = {}
    for name in sorted({name for one in columns.values() for name in one.cells} - set(FIGURES)):
        stages.setdefault(tuple(one.cells.get(name, "no") for one in columns.values()), []).append(name)
    figures = {name: tuple(one.cells.get(name, "not run") for one in columns.values()) for name in FIGURES}
    rows = [
        ("", *columns),
        *((", ".join(names), *cells) for cells, names in stages.items()),
        *((name, *cells) for name, cells in figures.items()),
    ]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|---" * (len(columns) + 1) + "|")
    for title in (GAPS, FAIL, UNFINISHED):
        items = dict.fromkeys(item for one in columns.values() for item in one.lists.get(title, ()))
        lines += ["", f"{title}:", ""] if items else []
        for item in items:
            have = [version for version, one in columns.items() if item in one.lists.get(title, ())]
            lines.append(f"- {item} ({', '.join(have)})")
    return lines


def place(version: str, measure: str) -> tuple[bool, list[int]]:
    """Sorts columns: the measure, then from old to new."""
    return version != measure, [int(number) for number in re.findall(r"\d+", re.sub(r"\+\w+", "", version))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("versions", nargs="*", metavar="own|VERSION[@PYTHON][=PATH]", default=VERSIONS)
    parser.add_argument(
        "--keep", metavar="DIR", help="where the environments are made and kept (default: a temporary folder)"
    )
    parser.add_argument("--only", choices=("stages", "tests"), help="run one half alone")
    parser.add_argument("--processes", type=int, default=2, help="modules of the tests that run at a time")
    parser.add_argument("--seconds", type=float, default=1800, help="the longest that a module of the tests may take")
    parser.add_argument("--resume", action="store_true", help="run no module again whose report is in out/capture")
    parser.add_argument("--again", action="store_true", help="run the tests that failed in a report again")
    parser.add_argument("--installed", action="store_true", help="install nothing: what the tests need is there")
    parser.add_argument("--pytest", default="", help="more arguments of pytest")
    parser.add_argument("--write", action="store_true", help="write the table into docs/versions.md")
    options = parser.parse_args()
    how = How(options.processes, options.seconds, tuple(shlex.split(options.pytest)), options.resume, options.again)
    page = ROOT / "docs" / "versions.md"
    columns = columns_of(page.read_text())
    own = full_version(sys.executable)
    if "own" not in options.versions and own not in columns:
        parser.error(f"{page.name} has no column of {own}, which is the measure: name `own` as well")
    ran, wrong = [], False
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(options.keep or temporary)
        home.mkdir(parents=True, exist_ok=True)
        for number, spec in enumerate(options.versions):
            folder = Path(temporary) / str(number)
            folder.mkdir()
            if options.only == "tests" and how.read_only and (REPORTS / spec).is_dir():
                python, version = "", spec
            else:
                python = sys.executable if spec == "own" else environment(spec, home)
                version = full_version(python)
            one = columns.setdefault(version, Column({}, {}))
            ran.append(version)
            if options.only != "tests":
                seen = look(python, folder)
                one.show(seen)
                wrong |= seen.outcome != ""
                print(f"✓ torch {version}: {len(seen.stages)} stages {seen.outcome}", flush=True)
            if options.only != "stages":
                if not (spec == "own" or how.read_only or options.installed):
                    capture_tests.install(python)
                tests = capture_tests.run(python, REPORTS / version, how)
                one.tell(tests)
                wrong |= bool(tests.failed or tests.unfinished)
                print(f"✓ torch {version}: {one.cells[TESTS]}", flush=True)
    columns = dict(sorted(columns.items(), key=lambda pair: place(pair[0], own)))
    lines = table(columns)
    print("\n".join(lines))
    if options.write:
        start, end = (re.escape(mark) for mark in MARK)
        body = f"{MARK[0]}\n" + "\n".join(lines) + f"\n{MARK[1]}"
        page.write_text(re.sub(f"{start}.*{end}", lambda _: body, page.read_text(), flags=re.DOTALL))
    for version in ran:
        missing = sorted(columns[own].stages - columns[version].stages)
        if missing and options.only != "tests" and not columns[version].lists.get(GAPS):
            print(f"torch {version} lacks {', '.join(missing)}, and no capture gap says so", file=sys.stderr)
            wrong = True
    return 1 if wrong else 0


def full_version(python: str) -> str:
    """With its build, as torch itself tells it: ``2.15.0+cu132``, and with another Python than ours ``2.15.0+cu132-py3.13``."""
    command = [python, "-c", "import sys, torch; print(torch.__version__, *sys.version_info[:2])"]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    version, *numbers = told[-3:]
    minor = tuple(map(int, numbers))
    return version if minor == sys.version_info[:2] else f"{version}-py{'.'.join(numbers)}"


if __name__ == "__main__":
    sys.exit(main())
