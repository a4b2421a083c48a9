"""Who asked for compiled code, and who calls it: the lines of Python that pass a program to ``torch.compile``, and those
that lead to each call of a compiled graph."""

from __future__ import annotations

import functools
import itertools
import types
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from irscope.internals.frames import callers, is_file
from irscope.internals.hooks import Hook, Undo, replace_attribute, undo_all
from irscope.usercode.user_files import is_package_file, is_user_file

Lines = tuple[tuple[str, int], ...]
"""File and line of each frame outside of torch, innermost first."""

_DEEPEST = 200


def calling_lines(frames: Iterable[types.FrameType]) -> Lines:
    """The lines of frames, without torch's own and those of Python's library."""
    files = ((frame.f_code.co_filename, frame.f_lineno) for frame in itertools.islice(frames, _DEEPEST))
    return tuple((file, line) for file, line in files if is_user_file(file) or is_package_file(file))


_ASKED: weakref.WeakKeyDictionary[Any, Lines] = weakref.WeakKeyDictionary()
"""By what ``torch.compile`` makes of its options, which is then applied to the program."""


def asking_hook() -> Hook:
    """Notes where ``torch.compile`` is called, for `asking_line`."""

    def apply(eval_frame: types.ModuleType) -> Undo:
        cls: Any = vars(eval_frame)["OptimizeContext"]  # another context switches Dynamo off around compiled code
        make = cls.__init__

        @functools.wraps(make)
        def __init__(context: Any, *args: Any, **kwargs: Any) -> None:
            make(context, *args, **kwargs)
            _ASKED[context] = calling_lines(callers())[:1]

        return replace_attribute(cls, "__init__", __init__)

    return Hook("the lines that call torch.compile", "torch._dynamo.eval_frame", "2.11 and 2.13", apply)


def asking_line(context: Any) -> Lines:
    """The line that called ``torch.compile``; empty if that is not known."""
    try:
        return _ASKED.get(context, ())
    except TypeError:
        return ()


def _line_that_asked() -> Lines:
    """The line that called ``torch.compile`` for the function whose compiled code is being called.  Another than that of
    its compile, if a further call of ``torch.compile`` reuses that."""
    for frame in callers():
        if _has_wrapper(frame.f_code.co_filename) and (line := asking_line(frame.f_locals.get("self"))):
            return line
    return ()


@functools.lru_cache(maxsize=4096)
def _has_wrapper(path: str) -> bool:
    """Whether a file has what ``torch.compile`` puts around a function.  By its name: what Dynamo makes of code may have
    constants that cannot be hashed."""
    return is_file(path, "torch/_dynamo/eval_frame.py")


class GraphCalls:
    """Tells the lines that call compiled graphs, each chain of lines once for each graph.

    Args:
        compile_now: The compile that is going on; None outside of one.
        called: Gets the compile of a graph that is called, whether the graph is that of its backward, and the lines.
    """

    def __init__(self, compile_now: Callable[[], str | None], called: Callable[[str, bool, Lines], None]) -> None:
        self._compile_now, self._called = compile_now, called
        self._graphs: dict[int, tuple[str, bool]] = {}  # by id(): the class of graphs cannot be hashed
        self._told: set[tuple[str, bool, Lines]] = set()
        self._backward: Lines = ()

    def hooks(self) -> list[Hook]:
        """What is patched in Inductor and in autograd."""
        return [
            Hook("the lines that call compiled code", "torch._inductor.output_code", "2.11 and 2.13", self._on_graphs),
            Hook("the lines that run a backward", "torch.autograd", "2.11 and 2.13", self._on_backward),
        ]

    def _on_graphs(self, output_code: types.ModuleType) -> Undo:
        cls: Any = vars(output_code)["CompiledFxGraph"]
        call, finish = cls.__call__, cls.post_compile

        def __call__(graph: Any, inputs: Any) -> Any:
            self._note(graph)
            return call(graph, inputs)

        def post_compile(graph: Any, example_inputs: Any, constants: Any, graph_kwargs: Any) -> None:
            self._made(graph, graph_kwargs)
            finish(graph, example_inputs, constants, graph_kwargs)

        return undo_all(
            [replace_attribute(cls, "__call__", __call__), replace_attribute(cls, "post_compile", post_compile)]
        )

    def _on_backward(self, autograd: types.ModuleType) -> Undo:
        run: Any = vars(autograd)["_engine_run_backward"]

        def _engine_run_backward(*args: Any, **kwargs: Any) -> Any:
            before, self._backward = self._backward, calling_lines(callers())
            try:
                return run(*args, **kwargs)
            finally:
                self._backward = before

        return replace_attribute(autograd, "_engine_run_backward", _engine_run_backward)

    def _made(self, graph: Any, options: Any) -> None:
        compile = self._compile_now()
        if compile is not None:
            self._graphs[id(graph)] = (compile, bool(options.get("is_backward", False)))

    def _note(self, graph: Any) -> None:
        if (known := self._graphs.get(id(graph))) is None:
            return
        # The engine of autograd runs the backward of a GPU in its own thread, in which no line of Python called it.
        lines = (calling_lines(callers()) or self._backward) + _line_that_asked()
        if (*known, lines) not in self._told:
            self._told.add((*known, lines))
            self._called(*known, lines)
