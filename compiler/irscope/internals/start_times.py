"""Where the time of a start goes, in a process that runs a script with nothing else of irscope in it.

It reads one JSON object from its standard input, ``{"script", "arguments", "began", "load", "save"}``, and prints one:
``{"seconds", "ended"}``.  ``began`` is the time (`time.time`) at which the process was started; ``load`` and ``save`` are the files
of the caches that are loaded before the script and saved after it, or empty.  What the script prints goes to standard error.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import sys
import threading
import time
import types
from collections.abc import Callable
from typing import Any

from irscope.internals.hooks import Hook, Hooks, Undo, replace_attribute, undo_all
from irscope.protocol import CaptureGap

INTERPRETER, IMPORTS, LOADING, SCRIPT = "interpreter", "imports", "loading", "script"
PARTS = {
    INTERPRETER: "Python itself",
    IMPORTS: "imports",
    LOADING: "loading caches, artifacts and weights",
    "dynamo": "Dynamo",
    "guards": "guards",
    "autograd": "AOTAutograd",
    "inductor": "Inductor: passes and code",
    "kernels": "C++ and Triton compilers",
    "autotuning": "autotuning",
    "graphs": "CUDA graphs",
    SCRIPT: "the script: model, data, first step",
}
"""The parts of a start, in its order, and their names for people."""
_OF_EVENT = (
    # the beginning of the name of PyTorch's timed event, and its part; the first that fits counts
    ("build_guards", "guards"), ("guard", "guards"),
    ("cudagraph", "graphs"), ("CUDAGraph", "graphs"),
    ("CachingAutotuner.benchmark", "autotuning"), ("CachingAutotuner.coordinate", "autotuning"), ("AlgorithmSelector", "autotuning"),
    ("benchmark", "autotuning"),
    ("async_compile", "kernels"), ("compile_file", "kernels"), ("CachingAutotuner", "kernels"), ("Triton", "kernels"),
    ("PyCodeCache", "kernels"), ("triton", "kernels"),
    ("AOTAutogradCache", LOADING), ("FxGraphCache", LOADING), ("fx_graph_cache", LOADING), ("autograd_cache", LOADING),
    ("create_aot_dispatcher_function", "autograd"), ("aot_", "autograd"), ("min_cut", "autograd"),
    ("_recursive_joint", "autograd"), ("_compile.<locals>.fw", "inductor"),
    ("compile_fx", "inductor"), ("inductor", "inductor"), ("fx_codegen", "inductor"), ("GraphLowering", "inductor"),
    ("Scheduler", "inductor"), ("PythonWrapper", "inductor"), ("_recursive", "inductor"), ("additional_fake", "inductor"),
    ("dynamo", "dynamo"), ("entire_frame", "dynamo"), ("compile_attempt", "dynamo"), ("bytecode", "dynamo"),
)  # fmt: skip
_LOADS = (
    ("torch", "load"), ("torch.compiler", "load_cache_artifacts"), ("torch.compiler", "load_compiled_function"),
    ("torch._inductor", "aoti_load_package"), ("safetensors.torch", "load_file"),
)  # fmt: skip


class _Clock:
    """Gives each moment of the main thread to the innermost part that is open."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(PARTS, 0.0)
        self._open = [("", SCRIPT)]
        self._last = time.perf_counter()
        self._thread = threading.get_ident()

    def begin(self, name: str, part: str) -> None:
        """Opens a part; an empty one goes on with the part around it."""
        if threading.get_ident() == self._thread:
            self._tick()
            self._open.append((name, part or self._open[-1][1]))

    def end(self, name: str) -> None:
        """Closes what has this name, and what is open inside."""
        if threading.get_ident() == self._thread and any(name == one for one, _ in self._open[1:]):
            self._tick()
            while self._open.pop()[0] != name:
                pass

    def _tick(self) -> None:
        now = time.perf_counter()
        self.seconds[self._open[-1][1]] += now - self._last
        self._last = now

    def close(self) -> None:
        """The rest is the script's."""
        self._tick()

    def around(self, name: str, part: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """A function whose time is of a part."""

        def timed(*args: Any, **kwargs: Any) -> Any:
            self.begin(name, part)
            try:
                return call(*args, **kwargs)
            finally:
                self.end(name)

        return timed


def main() -> None:
    """Prints the answer."""
    request = json.loads(sys.stdin.read())
    clock = _Clock()
    clock.seconds[INTERPRETER] = max(0.0, time.time() - request["began"])
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    gaps: list[str] = []
    hooks = [
        Hook("phases of a compile", "torch._dynamo.utils", "2.13 and 2.14", lambda module: _events(module, clock)),
        *(_load(module, name, clock) for module, name in _LOADS),
    ]
    machinery: Any = sys.modules["_frozen_importlib"]
    undo = replace_attribute(machinery, "_find_and_load", clock.around("import", IMPORTS, machinery._find_and_load))

    def see(gap: CaptureGap) -> None:
        gaps.append(gap.what)

    with Hooks(hooks, see):
        ended = _run(request)
        clock.close()
    undo()
    if request["save"] and "torch" in sys.modules:
        saved = importlib.import_module("torch.compiler").save_cache_artifacts()
        with open(request["save"], "wb") as file:
            file.write(saved[0] if saved else b"")
    answers.write(json.dumps({"seconds": clock.seconds, "ended": ended, "gaps": gaps}))
    answers.flush()
    os._exit(0)


def _run(request: dict[str, Any]) -> str:
    """Runs the script; returns the error that ended it, if one did."""
    script = request["script"]
    sys.argv = [script, *request["arguments"]]
    sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
    try:
        if request["load"]:
            with open(request["load"], "rb") as file:
                data = file.read()
            if data:
                importlib.import_module("torch.compiler").load_cache_artifacts(data)
        runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        return "" if not end.code else f"SystemExit: {end.code}"
    except Exception as error:  # noqa: BLE001  a script may raise anything
        return f"{type(error).__name__}: {error}".partition("\n")[0]
    return ""


def _events(module: types.ModuleType, clock: _Clock) -> Undo:
    logger: Any = module.__dict__["ChromiumEventLogger"]
    start, end = logger.log_event_start, logger.log_event_end

    def log_event_start(self: Any, event_name: str, *args: Any, **kwargs: Any) -> Any:
        clock.begin(event_name, next((part for name, part in _OF_EVENT if event_name.startswith(name)), ""))
        return start(self, event_name, *args, **kwargs)

    def log_event_end(self: Any, event_name: str, *args: Any, **kwargs: Any) -> Any:
        clock.end(event_name)
        return end(self, event_name, *args, **kwargs)

    return undo_all(
        [
            replace_attribute(logger, "log_event_start", log_event_start),
            replace_attribute(logger, "log_event_end", log_event_end),
        ]
    )


def _load(name: str, function: str, clock: _Clock) -> Hook:
    def apply(module: types.ModuleType) -> Undo:
        return replace_attribute(module, function, clock.around(function, LOADING, getattr(module, function)))

    return Hook(f"the time of {name}.{function}", name, "2.13 and 2.14", apply)
