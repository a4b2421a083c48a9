"""Starts runs and watches over them, from outside their process.

The command line and the language server both run scripts through `execute`.  It does not know torch: the script
runs in an interpreter of the user's choice, in its own process group, which can crash, hang or be killed.
"""

from __future__ import annotations

import codecs
import contextlib
import dataclasses
import functools
import os
import platform
import shutil
import socket
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping

from irscope.driver.budgets import Limits
from irscope.driver.children import Children
from irscope.driver.debuggers import without_debugger
from irscope.driver.endings import with_finding
from irscope.driver.environments import interpreter_of
from irscope.driver.launch import CannotStartError, Launch
from irscope.driver.targets import checked
from irscope.driver.watch import Watch
from irscope.pipelines.base import Pipeline
from irscope.pipelines.registry import pipeline_named
from irscope.protocol import (
    DEFAULT_PIPELINE,
    CaptureGap,
    Choices,
    EarlierStage,
    EntryKind,
    FindingSeen,
    GapSeen,
    Lane,
    Message,
    Outcome,
    OutcomeKind,
    Raised,
    RunOptions,
    RunRequest,
)
from irscope.store.store import Store, StoreError
from irscope.system import processes
from irscope.system.commands import remove_folders_of
from irscope.usercode.notebooks import cell_name, joined, python_of_cell, read_cells
from irscope.usercode.reading import read_bounded
from irscope.usercode.source import decode_source, digest_of
from irscope.vocabulary.records import dataclass
from irscope.worker.client import Worker


@dataclass(frozen=True)
class RunSpec(RunOptions):
    """What to run, and how.

    Args:
        script: Path of the script, relative to the caller's working folder; for another kind of entry the dotted name
            of the module or the node id of the test, which the interpreter looks up from its working folder.
        args: Its arguments.
        python: The interpreter that runs it; it needs torch, but not irscope.  A pipeline with an environment that was
            made of this interpreter runs in that.
        cwd: The script's working folder; None: the caller's, as with ``python script.py``.
        env: Variables on top of this process's environment, which is taken without those of a Python debugger.
        job: The job's name, if another launcher has started its ranks; see `irscope.driver.jobs`.

    Its budget of output counts what passes through `execute`'s ``on_output`` or ``on_bytes``.
    """

    script: str
    args: tuple[str, ...] = ()
    lane: Lane = Lane.DEEP
    python: str = sys.executable
    cwd: str | None = None
    env: Mapping[str, str] | None = None
    job: str = ""

    @property
    def stored_script(self) -> str:
        """What the store and `irscope list` call it: the absolute path of a script, else how one would type it."""
        if self.entry is EntryKind.MODULE:
            return f"-m {self.script}"
        return f"pytest {self.script}" if self.entry is EntryKind.PYTEST else os.path.abspath(self.script)


def execute(
    spec: RunSpec,
    store: Store,
    *,
    on_start: Callable[[str], None] = lambda run: None,
    on_message: Callable[[Message], None] = lambda message: None,
    on_output: Callable[[str, str], None] | None = None,
    on_bytes: Callable[[str, bytes], None] | None = None,
    on_exit: Callable[[int], None] = lambda code: None,
    stdout: int | None = None,
    cancel: threading.Event | None = None,
    worker: Worker | None = None,
) -> tuple[str, Outcome]:
    """Runs a script under capture and returns its run's id and outcome when the process has ended.

    Args:
        store: Where the run is kept; used by this thread only, until the return.
        on_start: Called with the run's id before anything runs.
        on_message: Called with each message of the run as it comes.
        on_output: Called with ``"stdout"`` or ``"stderr"`` and what the script printed.  None: the script writes to
            this process's own stdout and stderr.
        on_bytes: The same with the bytes as they are, in place of ``on_output``.
        on_exit: Called with what the script's process ended with, -N for signal N; not where irscope ended it.
        stdout: Where the script's stdout goes instead, without ``on_output`` and ``on_bytes``: a file descriptor of
            this process.
        cancel: Set by another thread to stop the run: its processes are killed at once.
        worker: A fork server of the same interpreter and environment; if it cannot serve, a fresh process does.

    No error of the script is raised here; StoreError is raised where the store cannot even begin a run.  On a full disk
    the run is kept in memory, until the store is closed, and a capture gap says so.
    """
    spec, path, source, reason = _script_of(spec)
    pipeline, why_not = _pipeline_of(spec)
    reason = why_not or reason
    try:
        run = store.create_run(path, spec.args, spec.lane, digest_of(source), _how(spec), spec.pipeline)
        if source:  # also where all that is compiled is in a library
            store.put_source(run, path, source)
    except sqlite3.Error as error:
        raise StoreError(f"The run store {store.path} cannot be written: {error}.") from error
    on_start(run)
    hearing, children = _Hearing(on_message, on_output, on_bytes, on_exit), None
    python = None if reason else shutil.which(spec.python)
    if not reason and python is None:
        reason = f"No Python interpreter at {spec.python}. Name one that has torch (--python PATH, or the setting irscope.python)."
    if python is None or pipeline is None:
        outcome = Outcome(OutcomeKind.ENVIRONMENT_ERROR, None, reason, 0.0)
    else:
        if (own := interpreter_of(pipeline, python)) != python:
            python, worker = own, None
        children = _children_of(run, spec, store, hearing)
        request = functools.partial(_request, run, spec, store, pipeline, children)
        environment = {**without_debugger(os.environ), **(spec.env or {})}
        launch = Launch(python, request, environment, _cwd(spec), piped=bool(on_output or on_bytes), stdout=stdout)
        # A script is known to a worker by its text; what a name refers to is not known before it runs.
        known_as = digest_of(source or path)
        try:
            outcome, raised = _watched(launch, run, spec, store, known_as, hearing, cancel, worker, children)
        except BaseException:
            if children is not None:
                children.close()
            raise
        finally:  # also after Ctrl-C
            remove_folders_of(run, environment.get("TMPDIR") or tempfile.gettempdir())
        if spec.trial:
            from irscope.runner.trial import what_was_held_back  # here: only trials need it

            if held_back := what_was_held_back(spec.evidence or spec.rounds):
                outcome, raised = Outcome(OutcomeKind.ENVIRONMENT_ERROR, None, held_back, outcome.seconds), []
        outcome = with_finding(store, run, outcome, raised, on_message)
    try:
        _keep_end(spec, store, run, outcome, children, on_message)
    except sqlite3.Error as error:
        unkept = f"{outcome.message} The run store {store.path} cannot be written any more ({error})."
        outcome = dataclasses.replace(outcome, message=unkept)
    finally:
        if children is not None:
            children.close()
    return run, outcome


def _keep_end(
    spec: RunSpec,
    store: Store,
    run: str,
    outcome: Outcome,
    children: Children | None,
    on_message: Callable[[Message], None],
) -> None:
    """Keeps what is only known when everything has ended.  Raises sqlite3.Error."""
    if spec.lane is Lane.DEEP:
        from irscope.provenance.kernel_paths import keep_paths  # here: it would delay the script
        from irscope.provenance.kernels import add_missing_origins

        for each in (run, *(children.runs if children is not None else ())):
            add_missing_origins(store, each)
            keep_paths(store, each)
    _set_outcome(store, run, outcome)
    if children is not None:
        for finding in children.merged(run, outcome, os.path.basename(spec.stored_script)):
            on_message(FindingSeen(finding))


def _children_of(run: str, spec: RunSpec, store: Store, hearing: _Hearing) -> Children | None:
    """What takes in the processes that the script starts; None for runs of irscope's own, for predictions, which compile
    in forks, and where the system has no such sockets."""
    own = spec.trial or spec.evidence or spec.rounds or spec.profile or spec.values or spec.without_compile
    if own or spec.targets or spec.fake_group or spec.pipeline != DEFAULT_PIPELINE or not hasattr(socket, "AF_UNIX"):
        return None
    how = {**_how(spec), "script_run": run}

    def new_run(number: int) -> str:
        return store.create_run(spec.stored_script, spec.args, spec.lane, "", how, spec.pipeline, is_made=False)

    def on_gap(gap: CaptureGap) -> None:
        hearing.on_message(GapSeen(gap))
        with contextlib.suppress(sqlite3.Error):
            store.put_gap(run, gap)

    with contextlib.suppress(OSError):
        return Children(store, new_run, on_gap)
    return None


def _script_of(spec: RunSpec) -> tuple[RunSpec, str, str, str]:
    """What is run, a notebook with its cells; the script's path and text; why it cannot be run, if it cannot."""
    stored = spec.stored_script
    path = stored.encode("utf-8", "backslashreplace").decode()
    source = spec.overlays.get(path)
    if path != stored:
        return spec, path, source or "", f"PyTorch cannot compile what is in {path}: {_unnamable(stored)}"
    if source is None and spec.entry.is_file:
        if reason := _unreadable(path):
            return spec, path, "", reason
        source = _read(path)
    source = source or ""
    if spec.entry is EntryKind.NOTEBOOK and not spec.cells:
        try:
            spec = with_cells(spec, source)
            source = spec.overlays[path]
        except ValueError as error:
            return spec, path, source, f"{path} cannot be run: {error}."
    return spec, path, source, ""


def _pipeline_of(spec: RunSpec) -> tuple[Pipeline | None, str]:
    """The pipeline of a run; or why there is none, or not for its targets."""
    pipeline = None
    try:
        pipeline = pipeline_named(spec.pipeline)
        checked(spec.targets, pipeline)
    except LookupError as error:
        # Nobody has checked the setting before: the command line refuses what is unknown by itself.
        where = "" if pipeline is not None else " Choose another (--pipeline NAME, or the setting irscope.pipeline)."
        return None, f"{error.args[0]}{where}"
    return pipeline, ""


def _set_outcome(store: Store, run: str, outcome: Outcome) -> None:
    try:
        store.set_outcome(run, outcome)
    except sqlite3.Error as error:
        if not store.go_on_in_memory(error, run):
            raise
        store.set_outcome(run, outcome)


def _how(spec: RunSpec) -> dict[str, object]:
    """What is kept of a run so that it can be run again.  For variables only the names are kept: values may be
    secret."""
    return {
        "entry": spec.entry.value, "target": spec.script, "cwd": os.path.abspath(_cwd(spec)),
        "python": interpreter_path(spec), "machine": platform.node(), "variables": sorted(spec.env or {}), **({"world": spec.world, "rank": spec.rank} if spec.world else {}), **({"job": spec.job} if spec.job else {}),
    }  # fmt: skip


def interpreter_path(spec: RunSpec) -> str:
    """The absolute path of the interpreter that a run names, links not followed: a virtual environment is one."""
    return os.path.abspath(shutil.which(spec.python) or spec.python)


def with_cells(spec: RunSpec, text: str) -> RunSpec:
    """The same with the cells of a notebook as it is on disk.  Raises ValueError if it is not one."""
    path = spec.stored_script
    cells = {cell_name(path, n): python_of_cell(source) for n, source in enumerate(read_cells(text), 1)}
    overlays = {path: joined(cells), **cells, **spec.overlays}
    return dataclasses.replace(spec, cells=tuple(cells), overlays=overlays)


def _cwd(spec: RunSpec) -> str:
    """A notebook runs in its own folder, as under Jupyter."""
    if spec.cwd:
        return spec.cwd
    return os.path.dirname(spec.stored_script) if spec.entry is EntryKind.NOTEBOOK else os.getcwd()


def _request(run: str, spec: RunSpec, store: Store, pipeline: Pipeline, children: Children | None) -> RunRequest:
    """What is asked of the script's process; what is asked of each process that it starts is left with them."""
    request = _request_of_script(run, spec, store, pipeline)
    if children is None:
        return request
    request = dataclasses.replace(request, children=children.address)
    children.answer_with(
        dataclasses.replace(request, is_child=True, entry=EntryKind.SCRIPT, cells=(), model=None, earlier=())
    )
    return request


def _request_of_script(run: str, spec: RunSpec, store: Store, pipeline: Pipeline) -> RunRequest:
    is_script = spec.entry.is_file
    return RunRequest(
        run=run,
        script=spec.stored_script,
        args=spec.args,
        lane=spec.lane,
        store=store.path,
        argv0=spec.script if is_script else "",
        target="" if is_script else spec.script,
        choices=_choices(spec),
        earlier=_earlier(run, spec, store, pipeline),
        **{option.name: getattr(spec, option.name) for option in dataclasses.fields(RunOptions)},
    )


def _choices(spec: RunSpec) -> dict[str, Choices]:
    """By target what a real device has chosen by timing, from the store that the run names."""
    if not spec.tuned:
        return {}
    from irscope.pipeline_captures.inductor.tuning import choices_of  # here: few runs need it
    from irscope.targets.catalogue import catalogue

    with contextlib.suppress(StoreError, sqlite3.Error), Store(spec.tuned) as store:
        chosen = {name: choices_of(store, catalogue().named(name).reported) for name in spec.targets}
        return {name: choices for name, choices in chosen.items() if choices is not None}
    return {}


def _earlier(run: str, spec: RunSpec, store: Store, pipeline: Pipeline) -> tuple[EarlierStage, ...]:
    """What the pipeline's capture compares with; nothing of a store that is damaged."""
    if spec.lane is Lane.DEEP and pipeline.compares:
        with contextlib.suppress(StoreError, LookupError):
            return store.earlier_stages(run, pipeline.compares)
    return ()


@dataclass(frozen=True)
class _Hearing:
    """Who is told what of a run, as `execute` has it."""

    on_message: Callable[[Message], None]
    on_output: Callable[[str, str], None] | None
    on_bytes: Callable[[str, bytes], None] | None
    on_exit: Callable[[int], None]

    def new_on_bytes(self) -> Callable[[str, bytes], None] | None:
        """For one process: a character may be cut in two by its pipe."""
        if self.on_bytes is not None or (on_output := self.on_output) is None:
            return self.on_bytes
        decoders = {name: codecs.getincrementaldecoder("utf-8")("replace") for name in ("stdout", "stderr")}
        return lambda name, data: on_output(name, decoders[name].decode(data))


def _watched(
    launch: Launch,
    run: str,
    spec: RunSpec,
    store: Store,
    known_as: str,
    hearing: _Hearing,
    cancel: threading.Event | None,
    worker: Worker | None,
    children: Children | None,
) -> tuple[Outcome, list[Raised]]:
    """Runs it in a fork of the worker where that is possible, else, or where the fork proves unfit, in a fresh process.

    Returns also what ended the script, if it failed.
    """
    started = time.monotonic()
    limits, gaps = Limits(spec.budget, started), []
    if store.unkept:
        gaps.append(CaptureGap("the run store: this run is not stored", store.unkept))
    if spec.budget.memory is not None and not processes.can_measure():
        gaps.append(CaptureGap("the memory limit", "this system does not report how much memory a process uses"))
    for gap in gaps:
        hearing.on_message(GapSeen(gap))

    def watch() -> Watch:
        on_bytes = hearing.new_on_bytes()
        told = hearing.on_message, on_bytes, gaps, hearing.on_exit
        return Watch(run, launch.python, store, limits, *told, stays=bool(spec.rounds), children=children)

    try:
        forked = launch.in_worker(worker) if worker is not None and known_as not in worker.unfit else None
        last = watch()
        outcome = last.over(forked or launch.fresh(), cancel, started, is_fork=forked is not None)
        if outcome is None and worker is not None:
            worker.unfit[known_as] = last.unfit
            store.forget_findings(run)
            if children is not None:
                children.forget()
            last = watch()
            outcome = last.over(launch.fresh(), cancel, started)
    except CannotStartError as error:
        return Outcome(OutcomeKind.ENVIRONMENT_ERROR, None, str(error), 0.0), []
    assert outcome is not None
    return outcome, last.raised(outcome)


def _unnamable(path: str) -> str:
    """Why a path has bytes that Python could not decode, and what to do."""
    encoding = sys.getfilesystemencoding()
    try:
        os.fsencode(path).decode("utf-8")
    except ValueError:
        return "the name is not UTF-8. Rename the file."
    return f"this locale's encoding of file names is {encoding}, which lacks its characters. Set PYTHONUTF8=1."


def _unreadable(path: str) -> str | None:
    if os.path.isdir(path):
        return f"{path} is a folder. Name a Python script or a notebook."
    if not os.path.isfile(path):
        return f"File not found: {path}."
    try:
        read_bounded(path)
        return None
    except OSError as error:
        return f"{path} cannot be read: {error.strerror}."


def _read(path: str) -> str:
    return decode_source(read_bounded(path))
