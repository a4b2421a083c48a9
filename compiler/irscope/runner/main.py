"""One run, inside its process: check the environment, start the capture, run the script."""

from __future__ import annotations

import atexit
import gc
import importlib.util
import os
import sys
from typing import TYPE_CHECKING, Any

from irscope.capture.base import missing
from irscope.pipelines.base import install_command
from irscope.pipelines.registry import pipeline_named
from irscope.protocol import Refused, RunRequest, Started, from_json
from irscope.runner import following, on_cpu, starting
from irscope.runner.entries import run_entry, set_first_path, why_not
from irscope.runner.hidden_modules import reveal_hidden
from irscope.runner.joining import joined
from irscope.runner.messages import MessagePipe
from irscope.runner.overlays import install_overlays
from irscope.runner.script import ScriptFailure
from irscope.runner.session import Session
from irscope.runner.torch_here import find_torch
from irscope.system.warden import part
from irscope.usercode.user_files import set_torch_folder

if TYPE_CHECKING:
    from irscope.runner.trial import Held
import faulthandler


def begin(request: dict[str, Any], message_fd: int, status_fd: int) -> None:
    """Runs the script of a request, which is plain data, in a child of this process, which becomes its warden."""
    part(message_fd, status_fd)
    run(from_json(RunRequest, request), MessagePipe(message_fd))


def _held(request: RunRequest) -> Held:
    """What a trial would do outside of itself is held back; one that is not timed leaves the processor to others."""
    from irscope.runner.trial import hold_back  # here: only trials need it

    if not request.rounds and hasattr(os, "nice"):
        os.nice(10)
    return hold_back(request.evidence or request.rounds, request.lane)


def follow(address: str) -> None:
    """Captures in an interpreter that a script under capture has started, for the driver at an address."""
    if (answer := joined(address)) is not None:
        request, messages = answer
        try:
            starting.follow_programs(address)
            install_overlays(request.overlays)
            following.begin(request, messages)
        except Exception as error:  # noqa: BLE001  the program must run as without irscope
            following.report_failure(address, error)
    reveal_hidden()


def run(request: RunRequest, messages: MessagePipe) -> None:
    """Runs the script; returns or raises SystemExit as the script did."""
    held = _held(request) if request.trial else None
    set_first_path(request)
    found = find_torch()
    if isinstance(found, str) or (problem := why_not(request) or _missing(request)):
        messages.send(Refused(found if isinstance(found, str) else problem))
        return
    folder, version = found
    set_torch_folder(folder)
    install_overlays(request.overlays)
    if request.targets or request.fake_group:
        on_cpu.redirect()
    messages.send(Started(version))
    session = Session(request, messages, held, following.in_fork)
    session.start()
    if request.children:
        starting.follow_programs(request.children)
    if file := _hiding_triton():
        session.hidden("triton", file)
    report_faults(messages.fd)
    # Registered before the script runs, so it is the last of the functions at exit: what the script compiles in its
    # own, or in threads that outlive its main module, is still captured.
    atexit.register(session.finish)
    reveal_hidden()
    if not gc.isenabled():  # `boot.py` has stopped it
        gc.freeze()  # so that no collection in the script goes through what irscope has imported
        gc.enable()
    try:
        failure = run_entry(request, session.script_ended, session.left_out)
    except SystemExit as stop:
        if not stop.code:
            session.serve_rounds()
        raise
    if isinstance(failure, ScriptFailure):
        sys.exit(failure.exit_code)
    session.serve_rounds()


def _missing(request: RunRequest) -> str:
    """Which packages of the pipeline are missing in this interpreter, in words for the user; empty if none is."""
    try:
        pipeline = pipeline_named(request.pipeline)
    except LookupError as error:
        return str(error.args[0])
    if not (packages := missing(pipeline)):
        return ""
    names = ", ".join(package.module for package in packages)
    command = install_command(pipeline, sys.executable, packages)
    start = f"The pipeline {pipeline.name} needs {names}, not installed in {sys.executable}. "
    if pipeline.torch:
        return f"{start}Make an environment with {pipeline.torch} for it ({command}), and choose its interpreter."
    return f"{start}Install it there ({command}), or choose another interpreter."


def _hiding_triton() -> str:
    """A file or folder of the user's that PyTorch imports in place of the package triton; empty if there is none."""
    try:
        spec = importlib.util.find_spec("triton")
    except (ImportError, ValueError):
        return ""
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    if spec is None or any(os.path.isdir(os.path.join(place, "language")) for place in places):
        return ""
    return spec.origin or next(iter(places), "")


def report_faults(fd: int) -> None:
    """Until the script sets up its own handler; one that is there already (``-X faulthandler``) stays.

    The process ends by the same signal.  A child that the script forks has the pipe closed, and writes nothing.
    """
    if fd >= 0 and not faulthandler.is_enabled():
        faulthandler.enable(fd, all_threads=True)
