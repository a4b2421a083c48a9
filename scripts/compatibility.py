"""What irscope sees in several versions of torch, each in an environment of its own; not a part of `npm test`.

    python scripts/compatibility.py 2.9.1 2.11.0 2.15.0          makes the environments, runs, prints a table
    python scripts/compatibility.py 2.13.0=path/to/python …      takes environments that are there
    python scripts/compatibility.py … --write                    writes the table into docs/versions.md

For each version the capture tests run (tests/versions.py lists them; what they need is installed there, torch stays as
it is), and, under the checked-out irscope, two scripts in the deep lane and the cases in the fast lane: which stages
came, which hooks did not fit (the capture gaps), and how many of the cases' known graph breaks and recompilations were
found.  What the installed irscope's own torch (that of this checkout) sees is the measure: a stage that it has and
another version lacks without a capture gap makes the exit code 1, as a test that fails does.

`--pip` is handed to ``pip install`` of torch, as in ``--pip='--index-url …'``: by default pip takes torch's build with
CUDA, of several gigabytes.  `--pytest` is handed to pytest, as in ``--pytest='-n 4'``.  The table keeps the columns of
versions that are not named.
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
from capture_tests import Tests

ROOT = Path(__file__).resolve().parents[1]
CASES = ROOT / "tests" / "cases"
BREAKS = "graph breaks of the cases at their line"
RECOMPILES = "recompilations of the cases"
TESTS = "capture tests"
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
    """What one version showed.  ``outcome`` is empty where both scripts ran to their end."""

    version: str
    stages: frozenset[str]
    gaps: frozenset[str]
    breaks: tuple[int, int]
    recompiles: tuple[int, int]
    outcome: str
    tests: Tests


def environment(spec: str, folder: Path, pip: list[str]) -> str:
    """The interpreter of a version, in a new virtual environment where none is named."""
    version, _, python = spec.partition("=")
    if python:
        return python
    home = folder / f"torch-{version}"
    python = str(home / "bin" / "python")
    if not os.path.exists(python):
        print(f"… making an environment with torch {version}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", f"torch=={version}", "numpy", *pip], check=True)
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


def look(python: str, folder: Path, pytest: list[str]) -> Seen:
    stages: set[str] = set()
    gaps: set[str] = set()
    version, outcome = "", ""
    for name, text in (("training", TRAINING), ("autograd", AUTOGRAD)):
        script = folder / f"{name}.py"
        script.write_text(text)
        report = run(python, script, folder / "runs.db", "deep")
        version = report["torch"] or version
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
    if python != sys.executable:
        capture_tests.install(python)
    tests = capture_tests.run(python, folder, pytest)
    return Seen(version, frozenset(stages), frozenset(gaps), tuple(breaks), tuple(recompiles), outcome, tests)  # type: ignore[arg-type]


@dataclass
class Column:
    """A version in the page: its cell in each row, and the lists below the table, with their titles."""

    cells: dict[str, str]
    lists: dict[str, list[str]]


def column(seen: Seen) -> Column:
    cells = dict.fromkeys(sorted(seen.stages), "yes")
    cells[BREAKS], cells[RECOMPILES] = (f"{found} of {all_}" for found, all_ in (seen.breaks, seen.recompiles))
    tests = seen.tests
    cells[TESTS] = f"{tests.passed} pass, {len(tests.failed)} fail, {len(tests.left_out)} not applicable"
    lists = {
        f"Capture gaps of {seen.version}:": sorted(seen.gaps),
        f"Capture tests that fail with {seen.version}:": [f"`{name}`: {why}" for name, why in tests.failed],
        f"Capture tests that are not applicable to {seen.version}:": by_reason(tests.left_out),
    }
    return Column(cells, {title: items for title, items in lists.items() if items})


def by_reason(left_out: tuple[tuple[str, str], ...]) -> list[str]:
    tests: dict[str, list[str]] = {}
    for name, reason in left_out:
        tests.setdefault(reason, []).append(f"`{name}`")
    return [f"{', '.join(names)}: {reason}" for reason, names in tests.items()]


def columns_of(page: str) -> dict[str, Column]:
    """Version → column, of the table that the page has."""
    made = page.partition(MARK[0])[2].partition(MARK[1])[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in made.split("\n") if line.startswith("|")]
    if not rows:
        return {}
    columns = {version: Column({}, {}) for version in rows[0][1:]}
    for name, *cells in rows[2:]:
        for one, cell in zip(columns.values(), cells, strict=True):
            one.cells[name] = cell
    for title, items in re.findall(r"^([^|\n-].*:)\n\n((?:- .*\n)+)", made, re.MULTILINE):
        version = next((version for version in columns if title.endswith(f" {version}:")), None)
        if version is not None:
            columns[version].lists[title] = [item[2:] for item in items.splitlines()]
    return columns


def table(columns: dict[str, Column]) -> list[str]:
    """Markdown: a row per stage and figure, a column per version; the first is the measure."""
    last = (BREAKS, RECOMPILES, TESTS)
    names = sorted({name for one in columns.values() for name in one.cells} - set(last))
    lines = ["| | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for name in (*names, *last):
        missing = "not run" if name in last else "no"
        lines.append(f"| {name} | " + " | ".join(one.cells.get(name, missing) for one in columns.values()) + " |")
    for one in columns.values():
        for title, items in one.lists.items():
            lines += ["", title, "", *(f"- {item}" for item in items)]
    return lines


def place(version: str, measure: str) -> tuple[bool, list[int]]:
    """Sorts columns: the measure, then from old to new."""
    return version != measure, [int(number) for number in re.findall(r"\d+", version.partition("+")[0])]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("versions", nargs="+", metavar="VERSION[=PYTHON]")
    parser.add_argument(
        "--keep", metavar="DIR", help="where the environments are made and kept (default: a temporary folder)"
    )
    parser.add_argument("--pip", default="", help="more arguments of pip install")
    parser.add_argument("--pytest", default="", help="more arguments of pytest")
    parser.add_argument("--write", action="store_true", help="write the table into docs/versions.md")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(options.keep or temporary)
        home.mkdir(parents=True, exist_ok=True)
        seen = []
        for number, spec in enumerate([f"own={sys.executable}", *options.versions]):
            folder = Path(temporary) / str(number)
            folder.mkdir()
            python = environment(spec, home, shlex.split(options.pip))
            seen.append(look(python, folder, shlex.split(options.pytest)))
            print(f"✓ torch {seen[-1].version} {seen[-1].outcome} {column(seen[-1]).cells[TESTS]}", flush=True)
    measure, *others = seen
    page = ROOT / "docs" / "versions.md"
    text = page.read_text()
    columns = {one.version: column(one) for one in seen}
    earlier = {version: one for version, one in columns_of(text).items() if options.write and version not in columns}
    lines = table(dict(sorted({**columns, **earlier}.items(), key=lambda pair: place(pair[0], measure.version))))
    print("\n".join(lines))
    if options.write:
        start, end = (re.escape(mark) for mark in MARK)
        body = f"{MARK[0]}\n" + "\n".join(lines) + f"\n{MARK[1]}"
        page.write_text(re.sub(f"{start}.*{end}", lambda _: body, text, flags=re.DOTALL))
    silent = [
        (s.version, sorted(measure.stages - s.stages)) for s in others if measure.stages - s.stages and not s.gaps
    ]
    for version, missing in silent:
        print(f"torch {version} lacks {', '.join(missing)}, and no capture gap says so", file=sys.stderr)
    return 1 if silent or any(s.outcome or s.tests.failed for s in seen) else 0


if __name__ == "__main__":
    sys.exit(main())
