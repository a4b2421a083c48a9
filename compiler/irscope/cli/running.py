"""``irscope run``, up to the end of the script.

Each module that is imported here delays the script.  What is only needed afterwards is in `irscope.cli.finishing`.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import sqlite3
import sys

from irscope.cli.limits import budget_of_flags
from irscope.cli.progress import ProgressLine
from irscope.cli.rank_arguments import TORCHRUN
from irscope.driver.driver import RunSpec, execute
from irscope.driver.targets import configs_of, fake_of, machine_code_of, targets_of, tuned_of
from irscope.pipelines.registry import pipeline_named
from irscope.protocol import CaptureGap, EntryKind, GapSeen, Lane, Message, ModelCall, Outcome, OutcomeKind, Started
from irscope.store.store import Store
from irscope.usercode.notebooks import is_notebook


def run(options: argparse.Namespace) -> int:
    """Runs the script and prints its report."""
    spec = _spec_of(options)
    baseline = _baseline(options.baseline)
    if options.write_baseline:
        refuse_unwritable(options.write_baseline)
    if (exit_code := _run_ranks(spec, options, baseline)) is not None:
        return exit_code
    progress = ProgressLine()
    with Store(options.store) as store:
        # With --json stdout is the report's alone, so the script prints to our stderr.
        stdout = sys.stderr.fileno() if options.json else None
        # What is to be counted has to pass through our hands.
        echo = Echo(to_stderr=options.json) if spec.budget.output else None
        gaps: dict[CaptureGap, None] = {}

        exits: list[int] = []

        def on_message(message: Message) -> None:
            progress.see(message)
            if isinstance(message, GapSeen):
                gaps[message.gap] = None
            elif isinstance(message, Started):
                with contextlib.suppress(sqlite3.Error):
                    store.pack_newest()  # now, while the script imports torch and this process has nothing else to do
                importlib.import_module("irscope.cli.finishing")  # likewise

        run_id, outcome = execute(
            spec, store, on_message=on_message, on_bytes=echo, on_exit=exits.append, stdout=stdout
        )
        if echo is not None:
            echo.end_line()
        from irscope.cli.finishing import finish

        finish(options, spec, store, run_id, outcome, gaps=gaps, baseline=baseline, progress=progress)
    return exit_code_of(outcome, exits, options.exit_code)


def _run_ranks(spec: RunSpec, options: argparse.Namespace, baseline: dict[str, int]) -> int | None:
    """Runs all ranks of a job, or, under torchrun, the rank of this process; None if there is no job."""
    if any(getattr(options, name) is not None for name in TORCHRUN):
        from irscope.cli import torchrun  # here: as below

        return torchrun.run(options, options.given)
    if options.ranks and not options.world:
        raise LookupError("--ranks chooses among the ranks of a job: add --world N.")
    if options.world or options.nproc_per_node:
        from irscope.cli.ranking import run_world  # here: no other run needs it

        return run_world(spec, options, baseline)
    if "WORLD_SIZE" in os.environ or "SLURM_NTASKS" in os.environ:
        from irscope.cli.job_ranks import run_in_job  # here: as above
        from irscope.driver.jobs import job_of

        if (job := job_of(os.environ)) is not None:
            return run_in_job(job, spec, options, baseline)
    return None


def _spec_of(options: argparse.Namespace) -> RunSpec:
    entry, script, model = entry_of(options)
    pipeline = pipeline_named(options.pipeline)
    target = options.target or ""
    return RunSpec(
        script=script,
        args=tuple(options.args),
        lane=Lane(options.lane),
        python=options.python,
        cwd=options.cwd,
        budget=budget_of_flags(options),
        entry=entry,
        symbolic_trace=options.symbolic_trace,
        pipeline=pipeline.name,
        model=model,
        targets=targets_of(target, pipeline, Lane(options.lane)),
        tuned=tuned_of(options.tuned or "", target),
        configs=configs_of(",".join(options.config), target),
        fake=fake_of(options.fake, target),
        machine_code=machine_code_of(options.machine_code, target),
    )


def _baseline(file: str | None) -> dict[str, int]:
    if not file:
        return {}
    from irscope.findings.control import read_baseline

    return read_baseline(file)


def entry_of(options: argparse.Namespace) -> tuple[EntryKind, str, ModelCall | None]:
    """What is at the beginning of the run: its kind, what the driver calls it, and the model of ``--model``."""
    if options.module:
        return EntryKind.MODULE, options.module, None
    if options.pytest:
        return EntryKind.PYTEST, options.pytest, None
    if options.model is not None:
        file, expression = file_and_expression("--model", options.model)
        inputs_file, inputs = file_and_expression("--inputs", options.inputs)
        return EntryKind.MODEL, file, ModelCall(expression, inputs, os.path.abspath(inputs_file))
    return (EntryKind.NOTEBOOK if is_notebook(options.script) else EntryKind.SCRIPT), options.script, None


def file_and_expression(option: str, given: str) -> tuple[str, str]:
    """``net.py:Net(8)`` in its two parts; a path may have colons.  Raises LookupError with a message for the user."""
    colons = [at for at, character in enumerate(given) if character == ":"]
    at = next((at for at in colons if os.path.isfile(given[:at])), None)
    if at is None and not os.path.isfile(given):
        named = given.partition(":")[0]
        raise LookupError(f"{option} {given}: file not found: {named}. Write FILE:EXPR, as in net.py:Net().")
    if at is None or not given[at + 1 :].strip():
        raise LookupError(f"{option} {given}: the expression is missing. Write FILE:EXPR, as in net.py:Net().")
    return given[:at], given[at + 1 :]


def refuse_unwritable(path: str) -> None:
    """Raises LookupError, before minutes of a run, for a file that cannot be written after it."""
    from irscope.usercode.writing import obstacle  # here: most runs write no file

    if why := obstacle(path):
        raise LookupError(f"{path} cannot be written: {why}")


_LIMIT_ENDED_IT = 124
"""With --exit-code, as `timeout` has it."""


def exit_code_of(outcome: Outcome, exits: list[int], as_script: bool = True) -> int:
    """The exit code of the command: the script's, or 0, if it is not to be passed on."""
    if outcome.kind is OutcomeKind.ENVIRONMENT_ERROR:
        return 3
    if not as_script:
        return 0
    if not exits:
        return _LIMIT_ENDED_IT
    return exits[-1] if exits[-1] >= 0 else 128 - exits[-1]


class Echo:
    """Prints what the script prints, as it comes and byte for byte."""

    def __init__(self, to_stderr: bool) -> None:
        self._streams = {"stdout": sys.stderr if to_stderr else sys.stdout, "stderr": sys.stderr}
        self._last = b"\n"

    def end_line(self) -> None:
        """The script may have been stopped in the middle of a line."""
        if self._last != b"\n":
            self("stdout", b"\n")

    def __call__(self, stream: str, data: bytes) -> None:
        """Takes what came from a stream of the script's."""
        self._last = data[-1:] or self._last
        # The script goes on where this fails; its report will fail as well, which says so.
        with contextlib.suppress(OSError):
            self._streams[stream].buffer.write(data)
            self._streams[stream].buffer.flush()
