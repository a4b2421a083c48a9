"""Environments of pipelines: virtual environments with the packages that a pipeline needs.

An environment has what it needs itself first, and after that the packages of the interpreter that it was made from.  So
a script finds its own packages there, and PyTorch is not installed twice.  A pipeline that needs another version of
PyTorch gets that one, without the packages for GPUs that it would bring along.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from irscope.driver.debuggers import without_debugger
from irscope.driver.stub_libraries import StubError, add_stubs
from irscope.pipelines.base import Pipeline
from irscope.store.store import default_path
from irscope.system.commands import run_bounded
from irscope.vocabulary.records import dataclass

_DONE = ".irscope-done"
_LOOK_SECONDS = 60.0
_SITE = "import sysconfig; print(sysconfig.get_path('purelib'))"
_REQUIRES = "import importlib.metadata, json; print(json.dumps(importlib.metadata.requires('torch') or []))"
_FOR_GPUS = re.compile(r"^(?:nvidia-|cuda-|triton|pytorch-triton)")


class EnvironmentFailure(Exception):
    """An environment cannot be made; the message says why and what to do."""


@dataclass(frozen=True)
class Environment:
    """The environment of a pipeline, which may not have been made yet.

    Args:
        base: The interpreter that it is made from.
    """

    pipeline: Pipeline
    folder: Path
    base: str

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

    @property
    def packages(self) -> tuple[str, ...]:
        """What pip installs, beside what these packages need."""
        own = [self.pipeline.torch] if self.pipeline.torch else []
        return (*own, *(package.to_install for package in self.pipeline.needs))

    @property
    def is_made(self) -> bool:
        """Whether it was made to its end, from this interpreter and with these packages."""
        try:
            return (self.folder / _DONE).read_text(encoding="utf-8") == self._mark and self.python.exists()
        except OSError:
            return False

    @property
    def _mark(self) -> str:
        return hashlib.sha256(json.dumps([os.path.abspath(self.base), *self.packages]).encode()).hexdigest()

    def done(self) -> None:
        """It was made to its end."""
        (self.folder / _DONE).write_text(self._mark, encoding="utf-8")


def default_folder(pipeline: Pipeline) -> Path:
    """Where the environment of a pipeline is: beside the run store, in the cache of irscope."""
    return Path(os.path.dirname(default_path()), "environments", pipeline.name)


def interpreter_of(pipeline: Pipeline, python: str) -> str:
    """Where a pipeline runs: in its environment if one was made of this interpreter, else in the interpreter itself.

    Args:
        python: The path of an interpreter.
    """
    if not pipeline.needs:
        return python
    environment = Environment(pipeline, default_folder(pipeline), python)
    return str(environment.python) if environment.is_made else python


def make(environment: Environment, on_step: Callable[[str], None]) -> None:
    """Makes an environment.  One that was begun is completed: pip keeps what it has downloaded.

    Args:
        on_step: Called with what is done next.

    Raises EnvironmentFailure.
    """
    python = str(environment.python)
    if not environment.python.exists():
        on_step(f"Making a virtual environment in {environment.folder}")
        _run(environment.base, "-m", "venv", str(environment.folder))
    site = Path(_asked(python, _SITE))
    # A line with a folder alone would leave out what is linked there: packages of the user's that pip installed with -e.
    base = _asked(environment.base, _SITE)
    (site / "irscope-base.pth").write_text(f"import site; site.addsitedir({base!r})\n", encoding="utf-8")
    needs = [package.to_install for package in environment.pipeline.needs]
    if environment.pipeline.torch:
        install_torch(python, environment.pipeline.torch, needs, on_step)
    else:
        on_step(f"Installing {', '.join(needs)}")
        _pip(python, *needs)
    environment.done()


def install_torch(python: str, torch: str, needs: Sequence[str], on_step: Callable[[str], None]) -> None:
    """Installs a PyTorch that is only used on the CPU, and packages that need it, into an environment.

    Args:
        torch: The requirement: ``torch==2.14.1``.
        needs: The packages.

    Raises EnvironmentFailure.
    """
    on_step(f"Installing {torch} without its packages for GPUs")
    _pip(python, "--no-deps", torch)
    needs = [*torch_needs(json.loads(_asked(python, _REQUIRES))), *needs]
    on_step(f"Installing {', '.join(needs)}")
    _pip(python, *needs)
    if (libraries := Path(_asked(python, _SITE), "torch", "lib")).is_dir() and os.name == "posix":
        try:
            stubs = add_stubs(libraries)
        except StubError as error:
            raise EnvironmentFailure(f"PyTorch cannot be imported without the libraries of CUDA. {error}") from error
        if stubs:
            on_step(f"Put stubs in place of {len(stubs)} libraries of CUDA, which nothing uses on the CPU")


def torch_needs(requirements: Sequence[str]) -> list[str]:
    """Requirements of a package of PyTorch without which it cannot be imported on the CPU."""
    return [one for one in requirements if "extra ==" not in one and not _FOR_GPUS.match(one)]


def _pip(python: str, *packages: str) -> None:
    _run(python, "-m", "pip", "install", "--disable-pip-version-check", *packages)


def _run(*command: str) -> None:
    """Runs a command, whose output the user sees on standard error."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=2, env=without_debugger(os.environ), check=False
        )
    except OSError as error:
        raise EnvironmentFailure(f"{command[0]} could not be started: {error.strerror}.") from error
    if done.returncode != 0:
        words = " ".join(command[:4])
        raise EnvironmentFailure(f"`{words} …` failed. Its output says why; the same command goes on where it stopped.")


def _asked(python: str, program: str) -> str:
    try:
        done = run_bounded([python, "-c", program], _LOOK_SECONDS, env=without_debugger(os.environ))
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EnvironmentFailure(f"{python} cannot be used: {error}.") from error
    if done.returncode != 0:
        raise EnvironmentFailure(f"{python} cannot be used: {done.stderr.strip().splitlines()[-1:]}.")
    return done.stdout.strip()
