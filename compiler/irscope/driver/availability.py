"""Which pipelines work in an interpreter.  Each is tried: a package that can be imported may still not compile anything."""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

from irscope.driver.debuggers import without_debugger
from irscope.driver.environments import interpreter_of
from irscope.pipelines.base import Package, Pipeline, install_command
from irscope.store.store import default_path
from irscope.system.commands import run_bounded, temporary_folder
from irscope.vocabulary.records import dataclass

TRIAL_SECONDS = 180.0
"""What a trial may compute.  The first compile with Inductor takes ten seconds, and several times that on a slow machine."""
_LOOK_SECONDS = 60.0


class Status(str, enum.Enum):
    """Whether a pipeline works in an interpreter."""

    AVAILABLE = "available"
    """A trial compiled something."""
    MISSING = "missing"
    """A package is not installed, or has another version."""
    UNSUPPORTED = "unsupported"
    """It does not work here, or irscope cannot run it yet."""
    UNTRIED = "untried"
    """Nothing is missing, and no trial has ended: none was made yet, or it took too long."""


@dataclass(frozen=True)
class Variant:
    """What is known about a backend that a package has registered, or about another variant of a pipeline.

    Args:
        why: Why it does not work, or why that is not known; empty if it works, or was not tried.
    """

    name: str
    status: Status
    why: str


@dataclass(frozen=True)
class Availability:
    """What is known about a pipeline in an interpreter.

    Args:
        why: Why it is not available, or not known; empty if it is available, or was not tried.
        install: The command that installs what is missing; empty if that is not the problem.
        stages: The names of its kinds of stages.
        variants: What packages have registered for it.
        python: The interpreter that it runs in: the one that was asked about, or that of its environment.
    """

    name: str
    title: str
    status: Status
    why: str
    install: str
    stages: tuple[str, ...]
    variants: tuple[Variant, ...] = ()
    python: str = ""


def trials_file() -> str:
    """The file that keeps which trials succeeded, for the command line and the editor."""
    return os.path.join(os.path.dirname(default_path()), "trials.json")


def availability_of(
    pipelines: Sequence[Pipeline],
    python: str,
    cache: str,
    *,
    again: bool = False,
    with_trials: bool = True,
    on_trial: Callable[[str], None] = lambda name: None,
) -> list[Availability]:
    """Tries each pipeline in an interpreter.

    Args:
        python: The interpreter: a path, or a name that is looked up.
        cache: A JSON file that keeps which trials succeeded, with which versions of the packages.  A failure is not
            kept: the user may just have repaired its cause.
        again: Whether to repeat trials that succeeded before.
        with_trials: Whether to make trials.  Without them a pipeline of which no trial succeeded before is
            `Status.UNTRIED`, and so is each variant.
        on_trial: Called with the name of a pipeline before its trial, which may take a minute.
    """
    path = shutil.which(python)
    runs_in = {one.name: interpreter_of(one, path) if path is not None else python for one in pipelines}
    installed: dict[str, dict[str, Any] | str] = {}
    for each in dict.fromkeys(runs_in.values()):
        there = [one for one in pipelines if runs_in[one.name] == each]
        installed[each] = _installed(each, there) if path is not None else f"No Python interpreter at {python}."
    trials = _Trials(_Kept(cache), again, with_trials, on_trial)
    found = []
    for pipeline in pipelines:
        own = runs_in[pipeline.name]
        verdict = trials.verdict(pipeline, own, installed[own])
        works = verdict[0] is Status.AVAILABLE or (verdict[0] is Status.UNTRIED and not verdict[1])
        variants = _variants(pipeline, own, with_trials, on_trial) if works else ()
        stages = tuple(kind.name for kind in pipeline.stages)
        found.append(Availability(pipeline.name, pipeline.title, *verdict, stages, variants, own))
    return found


def _variants(
    pipeline: Pipeline, python: str, with_trials: bool, on_trial: Callable[[str], None]
) -> tuple[Variant, ...]:
    """The variants that are installed.  No trial of one is kept: which package a name is from is not known."""
    if pipeline.variants is None:
        return ()
    with temporary_folder() as folder:
        try:
            environment = without_debugger(os.environ)
            command = [python, "-c", pipeline.variants.installed]
            done = run_bounded(command, _LOOK_SECONDS, patient=True, cwd=folder, env=environment)
        except (OSError, subprocess.TimeoutExpired):
            return ()
    found = []
    for name in dict.fromkeys(line.strip() for line in done.stdout.splitlines() if line.strip()):
        if not with_trials:
            found.append(Variant(name, Status.UNTRIED, ""))
            continue
        on_trial(f"{pipeline.name}, {pipeline.variants.noun} {name}")
        status, why, _ = _tried(pipeline, python, name)
        found.append(Variant(name, status, why))
    return tuple(found)


def _needed(pipeline: Pipeline) -> tuple[Package, ...]:
    return (Package("torch", pipeline.torch), *pipeline.needs)


def _name(package: Package) -> str:
    """The name of a package in the answer of an interpreter."""
    return f"{package.module} {package.requirement}"


_Verdict = tuple[Status, str, str]
"""The status, why, and how to install."""


def _lacking(pipeline: Pipeline, installed: dict[str, Any], python: str) -> _Verdict | None:
    """What is known without a trial; None if a trial is needed."""
    if pipeline.unsupported:
        facts = [f"{_described(one, installed)} in {python}." for one in pipeline.needs if not _fits(one, installed)]
        would = [f"It would show {pipeline.shows}."] if pipeline.shows else []
        return Status.UNSUPPORTED, " ".join([pipeline.unsupported, *facts, *would]), ""
    if lacking := [package for package in _needed(pipeline) if not _fits(package, installed)]:
        return Status.MISSING, f"{_told(lacking, installed)} in {python}.", install_command(pipeline, python, lacking)
    return None


def _fits(package: Package, installed: dict[str, Any]) -> bool:
    known = installed["packages"].get(_name(package))
    return known is not None and known["fits"] is not False


def _told(lacking: Sequence[Package], installed: dict[str, Any]) -> str:
    absent = [one.module for one in lacking if _name(one) not in installed["packages"]]
    others = [_described(one, installed) for one in lacking if one.module not in absent]
    told = [f"{' and '.join(absent)} {'is' if len(absent) == 1 else 'are'} not installed"] if absent else []
    return ", and ".join([*others, *told])


def _described(package: Package, installed: dict[str, Any]) -> str:
    known = installed["packages"].get(_name(package))
    if known is None:
        return f"{package.module} is not installed"
    return f"{package.module} {known['version']} is installed and {package.to_install} is needed"


def _tried(pipeline: Pipeline, python: str, *args: str) -> _Verdict:
    if not pipeline.trial:
        return Status.AVAILABLE, "", ""
    with temporary_folder() as folder:
        # Whatever it caches goes there, so that nothing comes from an earlier compile.
        environment = {**without_debugger(os.environ), "TMPDIR": folder, "PYTHONWARNINGS": "ignore"}
        try:
            command = [python, "-c", pipeline.trial, *args]
            done = run_bounded(command, TRIAL_SECONDS, patient=True, cwd=folder, env=environment)
        except subprocess.TimeoutExpired as error:
            stopped = f"a trial did not end within {error.timeout:.0f} s, and was stopped"
            return Status.UNTRIED, f"It is not known whether it works: {stopped}.", ""
        except OSError as error:
            return Status.UNSUPPORTED, f"{python} could not be started: {error.strerror}.", ""
    if done.returncode == 0:
        return Status.AVAILABLE, "", ""
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    reason = lines[-1] if lines else f"it ended with {_ending(done.returncode)}"
    return Status.UNSUPPORTED, f"A trial failed: {reason[:_LONGEST]}", ""


def _ending(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"


_LONGEST = 400
"""Characters of an error."""

_LOOK = """\
import importlib.metadata, importlib.util, json, sys
def look(module, requirement):
    try:
        if importlib.util.find_spec(module) is None:
            return None
    except ImportError:
        return None
    name = requirement or module.partition(".")[0]
    for mark in "<>=!~[; ":
        name = name.partition(mark)[0]
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return {"version": "", "fits": None}
    try:
        from packaging.requirements import Requirement
        fits = Requirement(requirement).specifier.contains(version, prereleases=True) if requirement else True
    except ImportError:
        fits = None
    return {"version": version, "fits": fits}
packages = {key: look(module, requirement) for key, module, requirement in json.loads(sys.argv[1])}
print(json.dumps({"python": sys.version, "packages": {name: one for name, one in packages.items() if one}}))
"""
"""What is installed, by the interpreter itself.  ``fits``: whether it is a version that is needed; None: unknown."""


def _installed(python: str, pipelines: Sequence[Pipeline]) -> dict[str, Any] | str:
    """By package what is installed; a message for the user if the interpreter cannot say so."""
    packages = {package for one in pipelines for package in _needed(one)}
    asked = [[_name(package), package.module, package.requirement] for package in packages]
    with temporary_folder() as folder:  # what is in the current folder is not installed
        try:
            environment = without_debugger(os.environ)
            command = [python, "-c", _LOOK, json.dumps(asked)]
            done = run_bounded(command, _LOOK_SECONDS, patient=True, cwd=folder, env=environment)
            found = json.loads(done.stdout)
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            return f"{python} does not say which packages it has: {error}."
    return found if isinstance(found, dict) else f"{python} does not say which packages it has."


def _key(python: str, pipeline: Pipeline, installed: dict[str, Any]) -> str:
    """The interpreter, the versions of what the trial used, and the trial itself."""
    versions = [(one.module, installed["packages"][_name(one)]) for one in _needed(pipeline)]
    # Not the file that a link leads to: each virtual environment links to the same one.
    facts = [os.path.abspath(python), installed["python"], versions, pipeline.trial]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


@dataclass(frozen=True)
class _Trials:
    """What `availability_of` was asked, with the trials that succeeded before."""

    kept: _Kept
    again: bool
    with_trials: bool
    on_trial: Callable[[str], None]

    def verdict(self, pipeline: Pipeline, python: str, installed: dict[str, Any] | str) -> _Verdict:
        """The verdict on a pipeline in an interpreter, by what is installed there; a text says why that is not
        known."""
        if isinstance(installed, str):
            return Status.UNSUPPORTED, installed, ""
        if (lacking := _lacking(pipeline, installed, python)) is not None:
            return lacking
        key = _key(python, pipeline, installed)
        if self.kept.has(key) and not self.again:
            found: _Verdict = Status.AVAILABLE, "", ""
        elif self.with_trials or not pipeline.trial:
            self.on_trial(pipeline.name)
            found = _tried(pipeline, python)
        else:
            found = Status.UNTRIED, "", ""
        if found[0] is Status.AVAILABLE:
            self.kept.add(key)
        return found


class _Kept:
    """The trials that succeeded, in a file.  A file that cannot be used costs only repeated trials."""

    def __init__(self, path: str) -> None:
        self._path = path
        try:
            with open(path, encoding="utf-8") as file:
                found = json.load(file)
        except (OSError, ValueError):
            found = []
        self._keys = [key for key in found if isinstance(key, str)] if isinstance(found, list) else []

    def has(self, key: str) -> bool:
        return key in self._keys

    def add(self, key: str) -> None:
        if key in self._keys:
            return
        self._keys = [*self._keys, key][-_MOST_KEPT:]
        part = f"{self._path}.{os.getpid()}"
        try:
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            with open(part, "w", encoding="utf-8") as file:
                json.dump(self._keys, file)
            os.replace(part, self._path)
        except OSError:
            return


_MOST_KEPT = 200


def as_data(found: Sequence[Availability]) -> list[dict[str, Any]]:
    """The same as JSON has it (docs/json.md), which has no separate status for unknown."""
    return [_plain(one) for one in found]


def _plain(one: Availability) -> dict[str, Any]:
    variants = [{**dataclasses.asdict(each), "status": _in_json(each.status)} for each in one.variants]
    return {**dataclasses.asdict(one), "status": _in_json(one.status), "variants": variants}


def _in_json(status: Status) -> str:
    return Status.UNSUPPORTED.value if status is Status.UNTRIED else status.value
