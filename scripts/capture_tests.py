"""The capture tests (`tests/versions.py` lists them) in another interpreter; a part of compatibility.py."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import signal
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests"))

from versions import CAPTURE  # noqa: E402

NEEDED = ("pytest", "pytest-asyncio", "pytest-xdist", "transformers")


@dataclass(frozen=True)
class Tests:
    """What became of the tests.  ``failed`` and ``left_out`` are names of tests with the reason, ``unfinished`` names of
    modules that took too long, of whose tests those are counted that had run."""

    passed: int
    failed: tuple[tuple[str, str], ...]
    left_out: tuple[tuple[str, str], ...]
    unfinished: tuple[str, ...] = ()


@dataclass(frozen=True)
class How:
    """How they are run: so many modules at a time, each for so many seconds at most, with these arguments of pytest more.
    ``resume``: a module whose report of an earlier run is there is not run again, and with 0 seconds none is.  ``again``:
    of such a module the tests that failed are."""

    processes: int = 2
    seconds: float = 1800
    arguments: tuple[str, ...] = ()
    resume: bool = False
    again: bool = False

    @property
    def read_only(self) -> bool:
        return self.resume and not self.seconds


def install(python: str) -> None:
    """Puts into an environment what the tests need, in our own versions, and this checkout; its torch stays as it is.

    Raises `subprocess.CalledProcessError` where pip fails.
    """
    wanted = [f"{name}=={importlib.metadata.version(name)}" for name in NEEDED]
    pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    torch = torch_version(python)
    constraint = ROOT / "out" / f"torch-{torch}.txt"
    constraint.parent.mkdir(exist_ok=True)
    constraint.write_text(f"torch=={torch}\n")
    subprocess.run([*pip, "-c", str(constraint), *wanted], check=True)
    subprocess.run([*pip, "--no-deps", "-e", str(ROOT)], check=True)


def torch_version(python: str) -> str:
    command = [python, "-c", "import importlib.metadata as m; print(m.version('torch'))"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def run(python: str, folder: Path, how: How) -> Tests:
    """Runs them, each module in its own pytest process, whose report and output stay in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)

    def module(name: str) -> Path:
        report = folder / f"{name}.xml"
        if how.read_only or (how.resume and report.exists()):
            return report if report.exists() else folder / f"{name}.part.xml"
        return run_module(python, name, folder, how)

    def once_more(name: str) -> Path | None:
        report, newer = folder / f"{name}.xml", folder / f"{name}.again.xml"
        failed = [test for test, _ in read([report.read_text()]).failed] if report.exists() else []
        if how.again and failed and not how.read_only:
            run_module(python, name, folder, how, failed)
        return newer if newer.exists() else None

    names = sorted(CAPTURE, key=lambda name: -_size(name))  # the longest first, so that none is alone at the end
    with ThreadPoolExecutor(how.processes) as pool:
        reports = dict(zip(names, pool.map(module, names), strict=True))
        newer = [report for report in pool.map(once_more, names) if report is not None]
    unfinished = sorted(name for name, report in reports.items() if report.stem != name)
    return read((report.read_text() for report in (*reports.values(), *newer) if report.exists()), unfinished)


def file_of(name: str) -> Path:
    """A module of tests by its name.  Raises ValueError if there is none, or more than one."""
    (found,) = (ROOT / "tests" / "worker").rglob(f"{name}.py")
    return found


def _size(name: str) -> int:
    markers = len(list((ROOT / "tests" / "markers").glob("*/*.py"))) if name == "test_markers" else 0
    return file_of(name).stat().st_size + 1000 * markers


def run_module(python: str, name: str, folder: Path, how: How, only: Iterable[str] = ()) -> Path:
    """Returns its report: `NAME.xml`; if it took too long `NAME.part.xml`, which may be missing.  For tests that
    are to be run alone, named as `read` names them, it is `NAME.again.xml`.

    Raises SystemExit if pytest itself failed.
    """
    tests = [f"{file_of(name)}::{test.partition('::')[2]}" for test in only]
    stem = f"{name}.again" if tests else name
    report, part, log = (folder / f"{stem}{end}" for end in (".xml", ".part.xml", ".log"))
    newer = () if tests else (folder / f"{name}.again.xml",)
    for old in (report, part, *newer):
        old.unlink(missing_ok=True)
    command = [python, "-m", "pytest", *(tests or [str(file_of(name))]), "-m", "capture", "-q",
               f"--junitxml={part}", "-p", "no:cacheprovider", f"--basetemp={folder / name}", *how.arguments]  # fmt: skip
    with log.open("w") as out:
        running = subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            code = running.wait(how.seconds)
        except subprocess.TimeoutExpired:
            _stop(running)
            print(f"… {stem} took more than {how.seconds:.0f} s", flush=True)
            return part
    if not part.exists():
        raise SystemExit(f"pytest ended with {code} in {python}:\n{log.read_text()[-2000:]}")
    print(f"… {stem}: {log.read_text().strip().splitlines()[-1]}", flush=True)
    return part.rename(report)


def _stop(tests: subprocess.Popen[bytes]) -> None:
    """With its report of the tests that ran, if it still writes one."""
    tests.send_signal(signal.SIGINT)
    with contextlib.suppress(subprocess.TimeoutExpired):
        tests.wait(60)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(tests.pid, signal.SIGKILL)  # scripts of its runs end with it: their drivers are gone
    tests.wait()


def read(reports: Iterable[str], unfinished: Iterable[str] = ()) -> Tests:
    """The counts of reports of pytest's (JUnit's XML); of a test in several of them the last one counts."""
    ended = {}
    for case in (case for report in reports for case in ElementTree.fromstring(report).iter("testcase")):
        ended[f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"] = case
    passed, failed, left_out = 0, [], []
    for name, case in ended.items():
        wrong = [one for kind in ("failure", "error") for one in case.findall(kind)]
        skipped = case.find("skipped")
        if wrong:
            failed.append((name, (wrong[0].get("message") or "").strip().split("\n")[0][:200]))
        elif skipped is not None:
            left_out.append((name, skipped.get("message") or ""))
        else:
            passed += 1
    return Tests(passed, tuple(sorted(failed)), tuple(sorted(left_out)), tuple(unfinished))
