"""What a script makes with ``torch.jit`` itself: each is a compile of the run, and is run as the script runs it."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import inspect
import sys
import time
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from irscope.capture.run_book import RunBook
from irscope.internals.torchscript import forget_runs, is_traced_now, methods_of
from irscope.pipeline_captures.torchscript.calls import leaves
from irscope.pipeline_captures.torchscript.frames import learn_frames
from irscope.pipeline_captures.torchscript.making import Call
from irscope.pipeline_captures.torchscript.printing import PrintedGraph
from irscope.pipeline_captures.torchscript.showing import Shown
from irscope.pipelines.torchscript import stages
from irscope.protocol import CaptureGap, Compile, CompileOutcome
from irscope.usercode.user_files import is_package_file, is_user_file

Place = tuple[str, str, int]
_MOST = 300
"""They are kept until the run ends."""
_FROZEN = ("freeze", "optimize_for_inference")


@dataclass
class _Made:
    """A TorchScript function or method that the script has made.

    Args:
        program: The object that the script calls.
        module: The module that has the method; None for a function.
        compile: Its compile; None until a method other than ``forward`` is called.
    """

    program: Any
    module: Any
    place: Place
    compile: Compile | None = None
    shown: Shown | None = None
    inlined: PrintedGraph | None = None
    has_run: bool = False


class OwnPrograms:
    """The programs of one run.

    Args:
        begin: A new compile of the run, of what is defined at a place: function, file and line.
        place_of: Where a function or module is defined.
    """

    def __init__(self, book: RunBook, begin: Callable[..., Compile], place_of: Callable[[Any], Place]) -> None:
        self._book, self._begin, self._place_of = book, begin, place_of
        self._made: dict[int, _Made] = {}
        self._places: dict[int, Place] = {}
        self._is_at_work = False

    def made(self, name: str, given: tuple[Any, ...], made: Any, caller: types.FrameType) -> None:
        """The script has called a function of ``torch.jit``.

        Args:
            name: Name of that function.
            given: Its arguments.
        """
        jit: Any = sys.modules["torch"].jit
        if self._is_at_work or not isinstance(made, (jit.ScriptFunction, jit.ScriptModule)):
            return
        source = given[0] if given else None
        place = self._placed(name, source, caller)
        is_users = is_user_file(caller.f_code.co_filename) or is_user_file(place[1])
        if not is_users or str(caller.f_globals.get("__name__")).startswith("torch."):  # what the program calls
            return
        is_new = id(made) not in self._places or name == "optimize_for_inference"  # it may change what is frozen
        if is_new:
            self._places[id(made)] = place
            frozen = self._made.get(id(vars(source).get("forward"))) if name in _FROZEN else None
            if len(self._made) < _MOST:
                self._add(source, made, place, frozen)
            else:
                self._book.gap(
                    CaptureGap("programs that the script makes with torch.jit", f"there are more than {_MOST}")
                )

    def called(self, program: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """The script calls a TorchScript function or method."""
        found = self._made.get(id(program))
        if found is None or found.has_run or self._is_at_work or is_traced_now():
            return
        found.has_run = True
        self._book.caught(lambda: self._run(found, args, kwargs))

    def _placed(self, name: str, source: Any, caller: types.FrameType) -> Place:
        """Where what was made is defined; for what a file has, or PyTorch defines, where it was made."""
        here = ("<loaded>" if name == "load" else type(source).__name__, caller.f_code.co_filename, caller.f_lineno)
        if (known := self._places.get(id(source))) is not None:
            return known
        if name == "load" or isinstance(source, sys.modules["torch"].jit.ScriptModule):
            return here
        place = self._place_of(source)
        return place if is_user_file(place[1]) or is_package_file(place[1]) else (place[0], *here[1:])

    def _add(self, source: Any, made: Any, place: Place, frozen: _Made | None) -> None:
        is_module = isinstance(made, sys.modules["torch"].jit.ScriptModule)
        methods = methods_of(made) if is_module else {place[0]: made}
        for method, program in methods.items():
            own = inspect.unwrap(getattr(type(source), method, source)) if is_module and method != "forward" else None
            where = self._place_of(own)[1:] if inspect.isfunction(own) else place[1:]
            found = _Made(program, made if is_module else None, (method if is_module else place[0], *where))
            self._made[id(program)] = found
            if method == "forward" or not is_module or len(methods) == 1:
                with self._at_work(found):
                    self._show(found, frozen)

    @contextlib.contextmanager
    def _at_work(self, found: _Made) -> Iterator[None]:
        """What is done meanwhile is the making of a compile, and is not the script's."""
        compile = found.compile = found.compile or self._begin(*found.place)
        start, outcome = time.perf_counter(), CompileOutcome.ERROR
        self._is_at_work = True
        try:
            yield
            outcome = CompileOutcome.COMPILED
        finally:
            self._is_at_work = False
            seconds = round(compile.seconds + time.perf_counter() - start, 6)
            ops = self._book.operations[compile.id]
            found.compile = dataclasses.replace(compile, outcome=outcome, graph_ops=ops, seconds=seconds)
            self._book.put_compile(found.compile)

    def _show(self, found: _Made, source: _Made | None = None) -> None:
        """Writes the graphs that are there before the first call.  The script's own graph stays as it is.

        Args:
            source: What was frozen, if this is a frozen module.
        """
        assert found.compile is not None
        shown = found.shown = Shown(
            self._book, found.compile.id, source.shown.memory if source and source.shown else None
        )
        graph, inlined = found.program.graph, found.program.inlined_graph
        shown.show_text(stages.GRAPH, str(graph))
        learn_frames(inlined, shown.memory)
        calls = leaves(graph, found.module, found.place[0])
        found.inlined = shown.show_inlined(inlined, calls, source.inlined if source else None)
        if source is None and found.module is not None and found.place[0] == "forward":
            shown.show_frozen(found.module)

    def _run(self, found: _Made, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        with self._at_work(found):
            if found.shown is None:
                self._show(found)
            assert found.shown is not None and found.inlined is not None
            program, module = found.program, found.module
            if module is not None:  # a script may count its calls in an attribute
                module = copy.deepcopy(module)
                program = getattr(module, found.program.name)

            def run(call: Call) -> Any:
                args, kwargs = call.arguments(call.tensors)
                return program(*args, **kwargs)

            forget_runs(program)  # tracing has run it, too
            inputs = tuple(value.debugName() for value in found.program.graph.inputs())
            found.shown.show_passes(module or program, Call.of(args, kwargs), inputs, found.inlined, run)
