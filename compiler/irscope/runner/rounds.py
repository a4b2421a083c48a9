"""Times compiled programs in the run's process, when a comparison asks for it.

Several processes, one for each pipeline, wait at the end of their scripts and take turns, so that what else the machine
does hits all of them alike.  They are asked through files in a private folder: `ROUND` files are written by the driver,
and answered under `ANSWER`; nothing in them is executed, and the driver is the only one that waits for more than a turn.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from irscope.capture.programs import Program, named_place_of
from irscope.internals.compile_calls import result_hook
from irscope.internals.frames import callers
from irscope.internals.hooks import Hook
from irscope.runner.tensors import cloned, largest_difference, seeded
from irscope.usercode.user_files import is_user_file
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.visible import bounded

READY, STOP = "ready.json", "stop"
_POLL_SECONDS = 0.01
_MOST_SECONDS = 3600.0
"""The driver stops its processes; one whose driver is gone does not wait for ever."""
_WARM_CALLS, _WARM_SECONDS = 3, 0.3
_ROUND_SECONDS = 0.05
"""Seconds of one program in one round; a program that is slower is called once."""
_LONGEST_SECONDS = 4 * _ROUND_SECONDS


def round_file(number: int) -> str:
    """What the driver makes to ask for a round."""
    return f"round-{number}"


def answer_file(number: int) -> str:
    """What answers it."""
    return f"answer-{number}.json"


@dataclass
class Measured:
    """A program of the script, with a copy of the arguments of its first call and the modes of that call."""

    program: Program
    compiled: Program
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    grad: bool
    inference: bool
    caller: tuple[str, int] = ("", 0)
    """The user's line that called it first."""
    calls: int = 0
    """Calls of a round; 0: it cannot be called again."""
    eager_calls: int = 0
    state: Any = None
    """The `irscope.runner.call_state.CallState` that its calls begin with."""
    changes: bool = False
    """Whether a call changes that."""


class Rounds:
    """Notes the programs that the script compiles, and times them after its end.

    Args:
        folder: Where it is asked and answers.
        why_as_python: Why a program runs as Python, or an empty text.
    """

    def __init__(self, folder: str, why_as_python: Callable[[object], str]) -> None:
        self._folder, self._why_as_python = folder, why_as_python
        self._measured: list[Measured] = []
        self._inside = False
        self._sees_all_calls = False

    def hooks(self) -> list[Hook]:
        """The hook that sees what ``torch.compile`` gives."""
        return [result_hook(self._see)]

    def look(self) -> None:
        """Called after the script, while the capture is still open."""

    def _see(self, program: Program, compiled: Any) -> Any:
        noted: list[bool] = []

        def see(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            if not noted:
                noted.append(True)
                self._note(program, compiled, args, kwargs)
            self._called(program, (args, kwargs))

        if isinstance(compiled, sys.modules["torch"].nn.Module):

            def entered(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
                if not self._sees_all_calls:
                    handle.remove()
                see(args, kwargs)

            handle = compiled.register_forward_pre_hook(entered, with_kwargs=True)
            return compiled

        @functools.wraps(compiled)
        def called(*args: Any, **kwargs: Any) -> Any:
            see(args, kwargs)
            return compiled(*args, **kwargs)

        return called

    def _called(self, program: Program, arguments: Any) -> None:
        """A program is being called, for those that see all calls."""

    def _note(self, program: Program, compiled: Program, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        torch: Any = sys.modules["torch"]
        if torch.compiler.is_compiling():  # a part of a program that is noted already
            return
        modes = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
        own_args, own_kwargs = cloned((args, kwargs))
        self._measured.append(Measured(program, compiled, own_args, own_kwargs, *modes, _user_line()))

    # --- after the script ---------------------------------------------------------------------------------------------

    def serve(self) -> None:
        """Say what was noted, and answer until the driver says that it has ended."""
        self._write(READY, {"programs": [self._prepared(one) for one in self._measured]})
        until, number = time.monotonic() + _MOST_SECONDS, 0
        while time.monotonic() < until and not os.path.exists(os.path.join(self._folder, STOP)):
            if os.path.exists(os.path.join(self._folder, round_file(number))):
                self._write(answer_file(number), {"programs": [_timed(one, number) for one in self._measured]})
                number += 1
            else:
                time.sleep(_POLL_SECONDS)

    def _write(self, name: str, data: dict[str, Any]) -> None:
        part = os.path.join(self._folder, f"{name}.part")
        with open(part, "w", encoding="utf-8") as file:
            json.dump(data, file)
        os.replace(part, os.path.join(self._folder, name))

    def _prepared(self, one: Measured) -> dict[str, Any]:
        """Warms a program up, and compares what it gives with what the program itself gives."""
        function, file, line = named_place_of(one.program, one.args)
        facts: dict[str, Any] = {"function": function, "file": file, "line": line, "grad": one.grad}
        try:
            with modes(one):
                difference, why = largest_difference(one.program, one.compiled, one.args, one.kwargs)
                one.eager_calls = _warmed(one, one.program)
                facts |= {"difference": difference, "why_no_difference": why}
                if as_python := self._why_as_python(one.program):
                    return {**facts, "difference": None, "why_no_difference": as_python, "why_no_seconds": as_python}
                one.calls = _warmed(one, one.compiled)
        except Exception as error:  # noqa: BLE001  whatever the program raises is the answer
            why = bounded(f"{type(error).__name__}: {error}".splitlines()[0])
            return {"difference": None, "why_no_difference": why, **facts, "why_no_seconds": why}
        return {**facts, "why_no_seconds": ""}


def _timed(one: Measured, number: int) -> dict[str, float | None]:
    """Seconds of a call, compiled and eager; which of them is first changes with each round."""
    sides = [("seconds", one.compiled, one.calls), ("eager", one.program, one.eager_calls)]
    found: dict[str, float | None] = {"seconds": None, "eager": None}
    with modes(one):
        for name, program, calls in sides[:: 1 if number % 2 else -1]:
            if calls:
                found[name] = _seconds(one, program, calls)
    return found


def _seconds(one: Measured, program: Program, calls: int) -> float:
    """Seconds of one call, on average over so many calls, or over fewer if they take too long on a busy machine."""
    synchronize()
    start, done = time.perf_counter(), 0
    while done < calls and time.perf_counter() - start < _LONGEST_SECONDS:
        program(*one.args, **one.kwargs)
        done += 1
    synchronize()
    return (time.perf_counter() - start) / done


def _warmed(one: Measured, program: Program) -> int:
    """Calls a program until it is warm; returns how many calls fill a round."""
    with seeded(0):
        seconds = [_seconds(one, program, 1) for _ in range(_WARM_CALLS)]
        while sum(seconds) < _WARM_SECONDS and len(seconds) < 1000:
            seconds.append(_seconds(one, program, 1))
    return max(1, int(_ROUND_SECONDS / max(min(seconds), 1e-7)))


def _user_line() -> tuple[str, int]:
    """Where the user's code is now; empty if no frame is the user's."""
    for frame in callers():
        if is_user_file(frame.f_code.co_filename):
            return frame.f_code.co_filename, frame.f_lineno
    return "", 0


@contextlib.contextmanager
def modes(one: Measured) -> Iterator[None]:
    """The modes of the program's first call."""
    torch: Any = sys.modules["torch"]
    with torch.inference_mode(one.inference), torch.set_grad_enabled(one.grad and not one.inference):
        yield


def synchronize() -> None:
    """Waits for the GPU, if there is one."""
    torch: Any = sys.modules["torch"]
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()
