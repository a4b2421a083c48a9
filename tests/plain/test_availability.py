"""Which pipelines work in an interpreter: what is missing, what a trial says, and what is kept of it."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import pytest
from irscope.cli import pipelining
from irscope.driver import availability
from irscope.driver.availability import Availability, Status, as_data, availability_of
from irscope.pipelines.base import Package, Pipeline, Variants
from irscope.vocabulary.stages import Role, StageKind

STAGES = (StageKind("my-ir", "My IR", "python", Role.TEXT, 3),)
HERE = Package("pytest")


def found(tmp_path: Path, python: str = sys.executable, **declared: object) -> Availability:
    pipeline = Pipeline("mine", "Mine", STAGES, **declared)  # type: ignore[arg-type]
    [one] = availability_of([pipeline], python, str(tmp_path / "cache" / "trials.json"))
    return one


def test_a_trial_decides(tmp_path: Path) -> None:
    one = found(tmp_path, needs=(HERE,), trial="import pytest")
    assert (one.status, one.why, one.install, one.stages) == (Status.AVAILABLE, "", "", ("my-ir",))
    one = found(tmp_path, needs=(HERE,), trial="import pytest\nraise RuntimeError('no compiler here')")
    assert (one.status, one.why) == (Status.UNSUPPORTED, "A trial failed: RuntimeError: no compiler here")
    one = found(tmp_path, trial="import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)")
    assert (one.status, one.why) == (Status.UNSUPPORTED, "A trial failed: it ended with signal 11")


def test_a_missing_package_has_the_command_that_installs_it(tmp_path: Path) -> None:
    one = found(tmp_path, needs=(HERE, Package("no_such.driver", "no-such>=2")))
    assert one.status is Status.MISSING
    assert one.why == f"no_such.driver is not installed in {sys.executable}."
    assert one.install == f"{sys.executable} -m pip install 'no-such>=2'"


def test_several_missing_packages_are_told_in_one_sentence(tmp_path: Path) -> None:
    one = found(
        tmp_path, needs=(Package("no_such", "no-such"), Package("pytest", "pytest>=999"), Package("nor", "nor"))
    )
    start, _, end = one.why.partition(" is installed and ")
    assert start.startswith("pytest ")
    assert end == f"pytest>=999 is needed, and no_such and nor are not installed in {sys.executable}."


def test_another_version_is_missing_too(tmp_path: Path) -> None:
    one = found(tmp_path, needs=(Package("pytest", "pytest>=999"),), trial="raise SystemExit('not reached')")
    assert one.status is Status.MISSING
    assert one.why.endswith(f"is installed and pytest>=999 is needed in {sys.executable}.")
    assert one.install == f"{sys.executable} -m pip install 'pytest>=999'"


def test_a_success_is_kept_until_the_trial_changes(tmp_path: Path) -> None:
    mark = tmp_path / "tried"
    trial = f"open({str(mark)!r}, 'a').write('x')"
    for _ in range(2):
        assert found(tmp_path, trial=trial).status is Status.AVAILABLE
    assert mark.read_text() == "x"
    assert found(tmp_path, trial=trial + "  # changed").status is Status.AVAILABLE
    assert mark.read_text() == "xx"


def test_without_trials_only_what_was_tried_before_is_known_to_work(tmp_path: Path) -> None:
    mark = tmp_path / "tried"
    trial = f"open({str(mark)!r}, 'a').write('x')"
    pipeline = Pipeline("mine", "Mine", STAGES, trial=trial, variants=Variants("backend", "print('theirs')"))
    file = str(tmp_path / "cache" / "trials.json")
    known = [
        availability_of([pipeline], sys.executable, file, with_trials=trials)[0] for trials in (False, True, False)
    ]
    assert [one.status for one in known] == [Status.UNTRIED, Status.AVAILABLE, Status.AVAILABLE]
    assert [[(each.name, each.status) for each in one.variants] for one in known] == [
        [("theirs", Status.UNTRIED)],
        [("theirs", Status.AVAILABLE)],
        [("theirs", Status.UNTRIED)],
    ]
    assert mark.read_text() == "xx", "once for itself and once for its backend"


def test_a_failure_is_not_kept(tmp_path: Path) -> None:
    repaired = tmp_path / "compiler"
    trial = f"open({str(repaired)!r})"
    assert found(tmp_path, trial=trial).status is Status.UNSUPPORTED
    repaired.touch()
    assert found(tmp_path, trial=trial).status is Status.AVAILABLE


def test_a_trial_that_does_not_end_says_nothing_about_the_pipeline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(availability, "TRIAL_SECONDS", 0.3)
    waits = "import time\ntime.sleep(60)"
    one = found(tmp_path, trial=waits)
    assert one.status is Status.UNTRIED
    assert one.why.startswith("It is not known whether it works: a trial did not end within ")
    [data] = as_data([one])
    assert (data["status"], data["why"], data["install"]) == ("unsupported", one.why, "")
    monkeypatch.setattr(pipelining, "availability_of", lambda *_, **__: [one])
    assert pipelining.list_pipelines(argparse.Namespace(python=sys.executable, again=False, json=False)) == 0
    said = " ".join(capsys.readouterr().out.split())  # lines are as long as the terminal is wide
    assert said.startswith(f"mine not known Mine {one.why}")


def test_a_variant_whose_trial_does_not_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(availability, "TRIAL_SECONDS", 2.0)
    waits = "import sys, time\nif sys.argv[1:]: time.sleep(60)"
    one = found(tmp_path, trial=waits, variants=Variants("backend", "print('theirs')"))
    assert one.status is Status.AVAILABLE
    [variant] = one.variants
    assert (variant.status, variant.why.partition(":")[0]) == (Status.UNTRIED, "It is not known whether it works")


def test_a_damaged_file_of_trials_costs_only_a_trial(tmp_path: Path) -> None:
    cache = tmp_path / "cache" / "trials.json"
    cache.parent.mkdir()
    for text in ("{", "[1]", "{}"):
        cache.write_text(text)
        assert found(tmp_path, trial="pass").status is Status.AVAILABLE
        assert len([key for key in json.loads(cache.read_text()) if isinstance(key, str)]) == 1


def test_no_interpreter_is_a_reason(tmp_path: Path) -> None:
    one = found(tmp_path, python="/no/such/python", trial="pass")
    assert (one.status, one.why) == (Status.UNSUPPORTED, "No Python interpreter at /no/such/python.")


def test_what_is_only_known_is_never_tried(tmp_path: Path) -> None:
    one = found(
        tmp_path, unsupported="It needs a device.", shows="its graph", needs=(Package("no_such"),), trial="pass"
    )
    assert one.status is Status.UNSUPPORTED
    assert one.why == f"It needs a device. no_such is not installed in {sys.executable}. It would show its graph."
    assert one.install == ""
