"""What is at the beginning of a run: a script, a notebook, a module, tests, or a model.

Each kind imports what it needs when it is asked for: most runs are scripts, which begin sooner without the rest.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable

from irscope.internals.hooks import Hook
from irscope.protocol import EntryKind, RunRequest
from irscope.runner.script import OnEnd, ScriptFailure, run_as_main, run_module_as_main
from irscope.usercode.user_files import treat_as_user_code

_ANY_GPU = "h100"
"""The GPU that a rank of a job without targets has, as the script sees it; and a run for CPUs whose script names CUDA."""


def set_first_path(request: RunRequest) -> None:
    """Puts onto ``sys.path`` what the interpreter would: the script's folder, or for a module the working folder."""
    if not getattr(sys.flags, "safe_path", False):
        folder = os.path.dirname(os.path.realpath(request.script))
        sys.path[0] = folder if request.entry.is_file else os.getcwd()


def why_not(request: RunRequest) -> str:
    """What is missing in this interpreter, in words for the user; empty if nothing is."""
    if request.entry is not EntryKind.PYTEST or importlib.util.find_spec("pytest") is not None:
        return ""
    return (
        f"pytest is not installed in {sys.executable}. Install it there (pip install pytest), "
        "or choose another interpreter (--python PATH, or the setting irscope.python)."
    )


def hooks_for(request: RunRequest) -> list[Hook]:
    """What a kind of entry changes outside torch, and a run with targets in it."""
    hooks = []
    if request.entry is EntryKind.PYTEST and request.overlays:
        from irscope.internals import pytest_overlays

        hooks.append(pytest_overlays.OVERLAYS)
    if request.targets or request.fake_group:
        from irscope.internals import cuda_on_cpu
        from irscope.runner import on_cpu
        from irscope.targets.catalogue import CPU, catalogue
        from irscope.targets.properties import properties_of

        known = catalogue()
        gpus = [name for name in request.targets if known.named(name).kind != CPU]
        gpu = known.named(gpus[0] if gpus else _ANY_GPU)
        hooks.append(cuda_on_cpu.hook(properties_of(gpu), on_cpu.is_cuda_named, max(1, request.local_world)))
    if request.fake_group:
        from irscope.internals import fake_group

        hooks += fake_group.hooks_for(request.world, request.rank, request.local_rank)
    return hooks


def run_entry(request: RunRequest, on_end: OnEnd, on_missing: Callable[[str], None]) -> ScriptFailure | None:
    """Runs it as ``__main__``; see `run_as_main`, and `run_cells_as_main` for ``on_missing``."""
    if request.entry is EntryKind.MODULE:
        return run_module_as_main(request.target, request.args, on_end)
    if request.entry is EntryKind.PYTEST:
        from irscope.runner import pytest_entry

        arguments = pytest_entry.arguments(request.target, request.args)
        return run_module_as_main("pytest", arguments, on_end, pytest_entry.describe)
    if request.entry is EntryKind.NOTEBOOK:
        from irscope.runner.cells import run_cells_as_main

        for name in request.cells:
            treat_as_user_code(name)
        return run_cells_as_main(request.script, request.cells, request.args, on_end, on_missing)
    if request.entry is EntryKind.MODEL and request.model is not None:
        from irscope.runner.model import run_model

        for path in (request.script, request.model.inputs_file):
            treat_as_user_code(path)
        return run_model(request.script, request.model, request.args, on_end)
    treat_as_user_code(request.script)
    return run_as_main(request.script, request.argv0 or request.script, request.args, on_end)
