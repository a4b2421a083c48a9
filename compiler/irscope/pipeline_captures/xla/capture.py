"""What is captured of PyTorch/XLA: what the script does itself with lazy tensors, and each program that it compiles."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from irscope.capture.nodes import NodeWriter
from irscope.capture.programs import Program, ProgramCapture, place_of
from irscope.capture.run_book import RunBook
from irscope.events.stack import live_places
from irscope.internals import compile_calls
from irscope.internals.exporting import flatten
from irscope.internals.graph_calls import Lines
from irscope.internals.hooks import Hook, Undo
from irscope.internals.lazy_tensors import bridge_hook, hook
from irscope.pipeline_captures.xla import findings
from irscope.pipeline_captures.xla.backend import OpenXla
from irscope.pipeline_captures.xla.device import TorchXla
from irscope.pipeline_captures.xla.graphs import Graphs
from irscope.pipeline_captures.xla.program import LazyProgram
from irscope.pipeline_captures.xla.running import UnfitError, is_lazy
from irscope.pipeline_captures.xla.script import LazyScript
from irscope.protocol import Compile
from irscope.system.commands import new_folder
from irscope.usercode.source import read_source

_MENTIONS = re.compile(r"xla", re.IGNORECASE)
_BACKEND = "openxla"


class XlaCapture(ProgramCapture):
    """Watches the script's lazy tensors.  A program that it compiles is run with lazy tensors, and what they compute is what
    the script gets; one whose tensors are on the device already is the script's own affair."""

    def __init__(self, book: RunBook) -> None:
        super().__init__(book)
        self.nodes = NodeWriter()
        self._folder: Any = None
        self._xla: TorchXla | None = None
        self._script: LazyScript | None = None
        self._backend = OpenXla(book, self.nodes, self._new_frame, lambda: self._outside(sees_syncs=True))
        self._compilers: dict[int, Program] = {}
        """By ``id()`` the programs for the backend of PyTorch/XLA, with what ``torch.compile`` itself makes of them."""

    def hooks(self) -> list[Hook]:
        """What takes the script's programs, and what brings the device into PyTorch."""
        programs = compile_calls.compiling_hook(self._asked)
        return [programs, hook(self._begin), bridge_hook(self._backend.around())]

    def _begin(self) -> Undo:
        self._folder = new_folder()
        self._xla = xla = TorchXla(Path(self._folder.name))
        self._backend.begin(xla, self._graphs(xla))
        self._script = LazyScript(self.book, xla, self._graphs(xla), self._new_frame)
        is_used = bool(_MENTIONS.search(read_source(self.book.request.script)))
        return self._script.watch(is_used)

    def _graphs(self, xla: TorchXla) -> Graphs:
        return Graphs(self.book, self.nodes, xla)

    def _new_frame(self) -> int:
        """The number of a compile that is not the first of a program."""
        self._count += 1
        return self._count - 1

    @contextlib.contextmanager
    def _outside(self, sees_syncs: bool = False) -> Iterator[None]:
        with self._script.outside(sees_syncs) if self._script else contextlib.nullcontext():
            yield

    # --- programs -----------------------------------------------------------------------------------------------------

    def _asked(self, program: Program, compile: Any, options: dict[str, Any]) -> Any:
        if options.get("backend") == _BACKEND:
            self._compilers[id(program)] = compile(program, **options)
        return self._take(program)

    def _compiled(self, program: Program, args: tuple[Any, ...], kwargs: dict[str, Any], lines: Lines) -> Program:
        own = self._compilers.get(id(program))
        if not _is_on_device(program, args, kwargs):
            return super()._compiled(program, args, kwargs, lines)
        if own is None:
            return program  # its operations are the script's

        def called(*args: Any, **kwargs: Any) -> Any:
            if not _is_on_device(program, args, kwargs):
                self.book.guarded(self._on_host)(program)
            return self._backend.call(program, own, args, kwargs)

        return called

    def _on_host(self, program: Program) -> None:
        findings.add_not_compiled(self.book, place_of(program), (), live_places())

    def lower(self, program: Program, args: tuple[Any, ...], kwargs: dict[str, Any], compile: Compile) -> Program:
        """Makes the first call with lazy tensors; see `ProgramCapture.lower`."""
        if id(program) in self._compilers:
            findings.add_not_compiled(self.book, place_of(program), (compile.id,), live_places())
        if self._xla is None:  # a capture gap says why
            return program
        lazy = LazyProgram(self.book, self._xla, self._graphs(self._xla), program, compile, self._new_frame)

        def run(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            with self._outside():
                return lazy.call(args, kwargs)

        try:
            first = [run(args, kwargs)]
        except UnfitError as error:
            lazy.runs_as_python(str(error))
            return program

        def called(*args: Any, **kwargs: Any) -> Any:
            if first:
                return first.pop()
            try:
                return run(args, kwargs)
            except UnfitError as error:
                lazy.runs_as_python(str(error))
                return program(*args, **kwargs)

        return called


def _is_on_device(program: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a call gets tensors of the device, or the program has such parameters."""
    own = program.parameters() if callable(getattr(program, "parameters", None)) else ()
    return any(is_lazy(one) for one in (*flatten((args, kwargs))[0], *own))
