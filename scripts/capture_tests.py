"""The capture tests (`tests/versions.py` lists them) in another interpreter; a part of compatibility.py."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NEEDED = ("pytest", "pytest-asyncio", "pytest-xdist", "transformers")


@dataclass(frozen=True)
class Tests:
    """What became of the tests.  ``failed`` and ``left_out`` are names of tests with the reason."""

    passed: int
    failed: tuple[tuple[str, str], ...]
    left_out: tuple[tuple[str, str], ...]


def install(python: str) -> None:
    """Puts into an environment what the tests need, in our own versions, and this checkout; its torch stays as it is.

    Raises `subprocess.CalledProcessError` where pip fails.
    """
    command = [python, "-c", "import importlib.metadata as m; print(m.version('torch'))"]
    torch = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    wanted = [f"{name}=={importlib.metadata.version(name)}" for name in NEEDED]
    pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    constraint = ROOT / "out" / f"torch-{torch}.txt"
    constraint.parent.mkdir(exist_ok=True)
    constraint.write_text(f"torch=={torch}\n")
    subprocess.run([*pip, "-c", str(constraint), *wanted], check=True)
    subprocess.run([*pip, "--no-deps", "-e", str(ROOT)], check=True)


def run(python: str, folder: Path, arguments: list[str]) -> Tests:
    """Runs them with these arguments of pytest more; what it prints goes to ``folder``."""
    report = folder / "capture.xml"
    command = [python, "-m", "pytest", "tests/worker", "-m", "capture", "-q", f"--junitxml={report}",
               "-p", "no:cacheprovider", f"--basetemp={folder / 'pytest'}", *arguments]  # fmt: skip
    with (folder / "capture.log").open("w") as log:
        done = subprocess.run(command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, env=dict(os.environ))
    if not report.exists():
        raise SystemExit(
            f"pytest ended with {done.returncode} in {python}:\n{(folder / 'capture.log').read_text()[-2000:]}"
        )
    return read(report.read_text())


def read(report: str) -> Tests:
    """The counts of a report of pytest's (JUnit's XML)."""
    passed, failed, left_out = 0, [], []
    for case in ElementTree.fromstring(report).iter("testcase"):
        name = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"
        wrong = [one for kind in ("failure", "error") for one in case.findall(kind)]
        skipped = case.find("skipped")
        if wrong:
            failed.append((name, (wrong[0].get("message") or "").strip().split("\n")[0][:200]))
        elif skipped is not None:
            left_out.append((name, skipped.get("message") or ""))
        else:
            passed += 1
    return Tests(passed, tuple(failed), tuple(left_out))
