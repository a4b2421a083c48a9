"""Runs scripts for tests: under capture, on the command line, and as plain Python."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from irscope.driver import RunSpec, execute
from irscope.protocol import Compile, Finding, Kernel, Lane, Message, Report
from irscope.store import Store
from irscope.worker.client import Worker

IRSCOPE = str(Path(sys.executable).parent / "irscope")
REPOSITORY = Path(__file__).parents[1]
TIMEOUT_SECONDS = 300


@dataclass(frozen=True)
class Ran:
    """What a run under capture gave."""

    report: Report
    stdout: str
    stderr: str
    messages: tuple[Message, ...]
    store: str

    def text(self, stage: str) -> str:
        with Store(self.store) as store:
            return store.stage_text(self.report.run, stage)

    def compile(self, id: str) -> Compile:
        return next(compile for compile in self.report.compiles if compile.id == id)

    def findings(self, kind: str) -> list[Finding]:
        return [finding for finding in self.report.findings if finding.kind == kind]

    def kernels(self, language: str) -> list[Kernel]:
        return [kernel for kernel in self.report.kernels if kernel.language == language]


def write(folder: Path, source: str, name: str = "script.py") -> Path:
    """A script; its text may be indented as the test is."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(source), encoding="utf-8")
    return path


def run_captured(
    script: Path,
    store: Path,
    lane: str = "fast",
    args: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    worker: Worker | None = None,
    **spec: object,
) -> Ran:
    """Runs a script under capture to its end, in a fork of the worker where one is given."""
    printed: dict[str, list[str]] = {"stdout": [], "stderr": []}
    messages: list[Message] = []
    with Store(str(store)) as opened:
        run, _ = execute(
            RunSpec(str(script), tuple(args), Lane(lane), env=env, **spec),  # type: ignore[arg-type]
            opened,
            on_message=messages.append,
            on_output=lambda stream, text: printed[stream].append(text),
            worker=worker,
        )
        report = opened.report(run)
    return Ran(report, "".join(printed["stdout"]), "".join(printed["stderr"]), tuple(messages), str(store))


def run_cli(
    *args: object, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """The console script of this environment, with a store of its own (see conftest.py)."""
    return subprocess.run(
        [IRSCOPE, *map(str, args)],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        env={**os.environ, **(env or {})},
        cwd=cwd,
        stdin=subprocess.DEVNULL,
    )


def run_plain(
    script: Path, args: Sequence[str] = (), env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """``python script.py`` without irscope."""
    done = subprocess.run(
        [sys.executable, str(script), *args],
        capture_output=True,
        timeout=TIMEOUT_SECONDS,
        env={**os.environ, **(env or {})},
        cwd=cwd,
        stdin=subprocess.DEVNULL,
    )
    out, err = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
    return subprocess.CompletedProcess(done.args, done.returncode, out, err)


def lines_marked(source: str, mark: str) -> set[int]:
    """The 1-based lines of a text that carry a marker comment, as in ``y = x.sin()  # @kernel``."""
    return {number for number, line in enumerate(source.split("\n"), 1) if mark in line}
