"""The base of captures that take the script's programs before Dynamo sees them and compile them in their own way."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import gc
import inspect
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from irscope.capture.base import Capture
from irscope.capture.run_book import RunBook
from irscope.internals import compile_calls
from irscope.internals.dynamo_frames import name_of_program
from irscope.internals.frames import callers
from irscope.internals.graph_calls import Lines, calling_lines
from irscope.internals.hooks import Hook
from irscope.protocol import CaptureGap, Compile, CompileOutcome, Origin

Program = Callable[..., Any]


_MOST_CALLERS = 200
"""Lines kept of those that call a compile."""


class NotLoweredError(Exception):
    """A program cannot be compiled in this way, and a finding says why: no capture gap."""


def place_of(program: Program) -> tuple[str, str, int]:
    """The name of the function or module, its file and its first line."""
    written = inspect.unwrap(getattr(program, "forward", program))  # not a decorator's
    code: Any = getattr(written, "__code__", None)
    function = str(getattr(code, "co_name", None) or type(program).__name__)
    return function, str(getattr(code, "co_filename", "")), int(getattr(code, "co_firstlineno", 1))


def named_place_of(program: Program, arguments: Any = ()) -> tuple[str, str, int]:
    """What the user passed to ``torch.compile`` by its name, as the compile has it, and file and first line of its code.

    Args:
        arguments: The arguments of its call, which tell more about the methods of a class.
    """
    function, file, line = place_of(program)
    return name_of_program(program, arguments) or function, file, line


class ProgramCapture(Capture):
    """Gets every function or module that the script passes to ``torch.compile``.

    Each program is one compile of the run, made at its first call, with that call's arguments.
    """

    def __init__(self, book: RunBook) -> None:
        super().__init__(book)
        self._as_python: dict[int, str] = {}
        self._compiles: dict[str, Compile] = {}

    def lower(self, program: Program, args: tuple[Any, ...], kwargs: dict[str, Any], compile: Compile) -> Program:
        """Compiles a program and puts its stages.

        Args:
            args, kwargs: The arguments of the first call; they must not be changed.
            compile: The compile of the run; its id is what stages are put under.

        Returns what is called in place of the program.  Whatever is raised, but `NotLoweredError`, is a capture gap, and
        the program itself runs from then on.
        """
        raise NotImplementedError

    def hooks(self) -> list[Hook]:
        """The hook that takes the programs from ``torch.compile``."""
        return [compile_calls.hook(self._take)]

    _count = 0
    _begun = ""
    _is_lowering = False
    not_called = "see the findings and gaps"
    """Why the script calls the program as it is though it could be lowered; set by `lower`."""

    def why_as_python(self, program: object) -> str:
        """A program that was called, and that was not replaced by what it was lowered to."""
        return self._as_python.get(id(program), "")

    def _take(self, program: Program) -> Program:
        lowered: list[Program] = []
        asked, told = calling_lines(callers())[:1], dict[Lines, str]()

        @functools.wraps(program)
        def called(*args: Any, **kwargs: Any) -> Any:
            if self._is_lowering:  # it is a part of the program that is being compiled
                return program(*args, **kwargs)
            lines = calling_lines(callers()) + asked
            if not lowered:
                found, self._begun = [program], ""
                self.book.caught(lambda: found.append(self._compiled(program, args, kwargs, lines)))
                lowered.append(found[-1])
                if found[-1] is program:
                    self._as_python[id(program)] = (
                        f"{named_place_of(program, args)[0]} runs as Python: {self.not_called}"
                    )
                told[lines] = self._begun
            elif lines not in told:
                told[lines] = next(iter(told.values()))
                self._called_again(told[lines], lines)
            return lowered[0](*args, **kwargs)

        return as_module(program, called) if isinstance(program, sys.modules["torch"].nn.Module) else called

    def _called_again(self, name: str, lines: Lines) -> None:
        """Keeps further lines that call a program, and that which passed it to ``torch.compile``, with its compile."""
        if (compile := self._compiles.get(name)) is not None:
            known = dict.fromkeys([*compile.callers, *(Origin(*line) for line in lines)])
            self._put_compile(dataclasses.replace(compile, callers=tuple(known)[:_MOST_CALLERS]))

    def _put_compile(self, compile: Compile) -> None:
        self._compiles[compile.id] = compile
        self.book.put_compile(compile)

    def begin(self, function: str, file: str, line: int, program: str = "", lines: Lines = ()) -> Compile:
        """A new compile of the run, of what is defined at a place.

        Args:
            program: The name of what was passed to ``torch.compile``.
            lines: The lines that call it.
        """
        name = f"{self._count}/0"
        self._count += 1
        callers = tuple(Origin(*each) for each in dict.fromkeys(lines))[:_MOST_CALLERS]
        compile = Compile(
            name, function, file, line, CompileOutcome.RUNNING, 0, 0, 0.0, program=program, callers=callers
        )  # fmt: skip
        self._begun = name
        self._put_compile(compile)
        self.book.operations[name] = 0
        return compile

    def _compiled(self, program: Program, args: tuple[Any, ...], kwargs: dict[str, Any], lines: Lines) -> Program:
        compile = self.begin(*place_of(program), name_of_program(program), lines)
        name, self.not_called = compile.id, type(self).not_called
        start, outcome = time.perf_counter(), CompileOutcome.ERROR
        self._is_lowering = True
        try:
            with older_objects_kept():
                lowered = self.lower(program, args, kwargs, compile)
            outcome = CompileOutcome.COMPILED
            return lowered
        except NotLoweredError:
            return program
        except Exception as error:  # noqa: BLE001  the script runs on without it
            self.book.gap(CaptureGap(f"the stages of {name}", f"{type(error).__name__}: {error}"))
            return program
        finally:
            self._is_lowering = False
            seconds = round(time.perf_counter() - start, 6)
            ops = self.book.operations[name]
            self._put_compile(dataclasses.replace(compile, outcome=outcome, graph_ops=ops, seconds=seconds))


@contextlib.contextmanager
def older_objects_kept() -> Iterator[None]:
    """For work that makes many objects: the collector does not look again and again at all that was there before.

    With transformers loaded that is a million objects, a tenth of a second each time.  Garbage of the work itself is
    collected as ever.
    """
    if gc.get_freeze_count():  # it is the script's own, or the worker's
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def as_module(program: Any, called: Program) -> Any:
    """What ``torch.compile`` gives for a module: a module with its parameters, modes and attributes."""
    module: Any = sys.modules["torch"].nn.Module

    class CompiledModule(module):  # type: ignore[misc]
        """A module that calls what the program was lowered to."""

        def __init__(self) -> None:
            super().__init__()
            self._orig_mod = program  # as torch.compile calls it: scripts look for it, and it is in names of parameters
            self.training = program.training

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            """Call the lowered program."""
            return called(*args, **kwargs)

        def __getattr__(self, name: str) -> Any:
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(super().__getattr__("_orig_mod"), name)

    return CompiledModule()
