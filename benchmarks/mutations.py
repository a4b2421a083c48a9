"""Whether the tests still notice what is broken on purpose: ``python benchmarks/mutations.py [--list | a room | a text]``.

`mutations.json` holds lines of all rooms, how each is broken, and the test files that notice it.  Each line is broken in
a scratch copy of the repository, one at a time, and the tests that `npm test` would run of these files are run there;
first of all unbroken, since a test that fails anyway notices nothing.  A line is found by its text, wherever it has moved.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
MUTATIONS = Path(__file__).with_name("mutations.json")
SOURCES = {".py": ("compiler", "server"), ".ts": ("extension/src",)}
TIMEOUT_SECONDS = 900
NOTHING_SELECTED = 5


def main(args: list[str]) -> int:
    """Prints a line for each mutation; returns 1 where one is not noticed or not there."""
    mutations = [one for one in json.loads(MUTATIONS.read_text(encoding="utf-8")) if wanted(one, args)]
    if "--list" in args:
        for one in mutations:
            print(f"{one['room']}: {one['old']} -> {one['new']} ({', '.join(one['tests'])})")
        return 0
    healthy: dict[tuple[str, ...], bool] = {}
    bad = 0
    with tempfile.TemporaryDirectory(prefix="irscope-mutations-") as folder:
        copy = copy_of_repository(Path(folder) / "copy")
        for one in mutations:
            begun = time.monotonic()
            tests = tuple(one["tests"])
            if tests not in healthy:
                healthy[tests] = run_tests(copy, tests)
            verdict = "fails unbroken" if not healthy[tests] else judge(copy, one)
            bad += verdict != "caught"
            print(f"{verdict:15} {time.monotonic() - begun:5.0f} s  {one['room']:9} {one['old']}", flush=True)
    print(f"{len(mutations) - bad} of {len(mutations)} caught")
    return 1 if bad else 0


def wanted(mutation: dict[str, object], args: list[str]) -> bool:
    texts = [each for each in args if not each.startswith("--")]
    return not texts or any(each == mutation["room"] or each in str(mutation["old"]) for each in texts)


def copy_of_repository(target: Path) -> Path:
    """A copy of what git knows and of what is new, with this checkout's environments."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    for name in ("node_modules", "extension/dist", "extension/bundled"):
        if (ROOT / name).exists():
            (target / name).symlink_to(ROOT / name)
    return target


def judge(copy: Path, mutation: dict[str, object]) -> str:
    """Breaks the line, runs the tests, and mends it."""
    old, new = str(mutation["old"]), str(mutation["new"])
    places = [path for path in sources(copy) if old in path.read_text(encoding="utf-8")]
    if len(places) != 1:
        return f"in {len(places)} files"
    (path,) = places
    text = path.read_text(encoding="utf-8")
    try:
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
        return "missed" if run_tests(copy, tuple(mutation["tests"])) else "caught"  # type: ignore[arg-type]
    finally:
        path.write_text(text, encoding="utf-8")


def sources(copy: Path) -> list[Path]:
    return [
        path
        for suffix, folders in SOURCES.items()
        for folder in folders
        for path in sorted((copy / folder).rglob(f"*{suffix}"))
        if not {"node_modules", "bundled", "dist"} & set(path.relative_to(copy).parts)
    ]


def run_tests(copy: Path, names: tuple[str, ...]) -> bool:
    """Whether what `npm test` runs of these files passes."""
    found = [path for name in names for path in test_files(copy, name)]
    if len(found) < len(names):
        print(f"  not all of {', '.join(names)} are there", flush=True)
        return False
    python = [str(path) for path in found if path.suffix == ".py"]
    node = [str(path) for path in found if path.suffix != ".py"]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(copy / "compiler"), str(copy / "server")]),
        "PYTHONDONTWRITEBYTECODE": "1",  # a file that is written twice within a second would be taken for the same
    }
    commands = []
    if python:
        commands.append([sys.executable, "-m", "pytest", "-q", "-x", "-m", "not nightly", *python])
    if node:
        commands.append(["node", "node_modules/mocha/bin/mocha.js", "--timeout", "600000", "--bail", *node])
    for command in commands:
        try:
            done = subprocess.run(
                command, cwd=copy, env=environment, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return False
        if done.returncode not in (0, NOTHING_SELECTED):
            if "--verbose" in sys.argv:
                print(done.stdout[-2000:], done.stderr[-500:])
            return False
    return True


def test_files(copy: Path, name: str) -> list[Path]:
    return [*(copy / "tests").rglob(f"{name}.py"), *(copy / "tests" / "editor").rglob(f"{name}.test.mjs")]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
