"""Compiles that the script asks for ahead of time: ``torch.compile(f, fullgraph=True).aot_compile(…)``,
``torch.compiler.precompile`` and ``standalone_compile``.

PyTorch traces a function for ``aot_compile`` in a separate compile, but writes no ``dynamo_start``, and runs the backend
after that compile has ended.  So its records say neither which function they are of nor, from the backend on, which compile.
The other two go without Dynamo, and their records say of no compile at all.
"""

from __future__ import annotations

import functools
import sys
import threading
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from irscope.internals.frames import callers
from irscope.internals.hooks import Hook, Undo, replace_attribute, undo_all
from irscope.usercode.user_files import is_irscope_file, is_torch_file


class Receiver(Protocol):
    """Receives these compiles, by PyTorch's names (``0/0``); its methods raise nothing."""

    def began(self, compile: str) -> None:
        """A compile begins; `going_on` says of what."""

    def traced(self, compile: str, captured: Any) -> None:
        """Dynamo has made the graph: PyTorch's ``CaptureOutput``."""

    def ended(self, compile: str, graph: Any) -> None:
        """A compile without Dynamo has ended.

        Args:
            graph: The ``GraphModule`` that was compiled.
        """

    def failed(self, compile: str) -> None:
        """An exception, which goes to the script, ends the compile; called while it is handled."""

    def missed(self, error: Exception) -> None:
        """A compile cannot be followed, and goes on as without irscope."""


@dataclass
class Compiling:
    """A compile ahead of time.

    Args:
        program: What was passed to ``torch.compile``.
        code: Of the function that is compiled; of a module, its ``forward``.
        id: PyTorch's ``CompileId``.
        is_named: Whether Dynamo has taken the id.
    """

    program: Any
    code: types.CodeType
    id: Any
    is_named: bool = False


class _OfThread(threading.local):
    now: Compiling | None = None


_HERE = _OfThread()


def going_on() -> Compiling | None:
    """The compile ahead of time that goes on in this thread."""
    return _HERE.now


def hooks(receiver: Receiver) -> list[Hook]:
    """All of them."""
    return [hook(receiver), precompile_hook(receiver), standalone_hook(receiver)]


def hook(receiver: Receiver) -> Hook:
    """Has all that belongs to such a compile happen in one compile of PyTorch's."""

    def apply(module: types.ModuleType) -> Undo:
        from torch import _guards, nn  # imported already: Dynamo needs them

        convert, guards = vars(module)["convert_frame"], vars(_guards)
        compile_of, name_of, capture = module.aot_compile_fullgraph, convert.get_compile_id, convert.fullgraph_capture
        traced_function, context, context_of = (
            convert.get_traced_fn,
            guards["CompileContext"],
            guards["compile_context"],
        )

        @functools.wraps(name_of)
        def get_compile_id(*args: Any, **kwargs: Any) -> Any:
            if (here := _HERE.now) is None or here.is_named:
                return name_of(*args, **kwargs)
            here.is_named = True
            return here.id

        @functools.wraps(capture)
        def fullgraph_capture(*args: Any, **kwargs: Any) -> Any:
            if (here := _HERE.now) is None:
                return capture(*args, **kwargs)
            try:
                made = capture(*args, **kwargs)
            except Exception:
                receiver.failed(str(here.id))  # before PyTorch writes its metrics, which do not say it
                raise
            receiver.traced(str(here.id), made)
            return made

        @functools.wraps(compile_of)
        def aot_compile_fullgraph(model: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                function, owner = traced_function(model)
                if isinstance(owner, nn.Module) and function.__module__ == nn.Module.__module__:
                    function = owner.forward  # which PyTorch's own `__call__` calls
                here = Compiling(model, function.__code__, name_of({}))
                inside = context_of(context(here.id))
            except Exception as error:  # noqa: BLE001  a capture never fails as a whole
                made = compile_of(model, *args, **kwargs)  # raises what is the script's own mistake
                receiver.missed(error)
                return made
            before, _HERE.now = _HERE.now, here
            try:
                with inside:
                    receiver.began(str(here.id))
                    return compile_of(model, *args, **kwargs)
            except Exception:
                receiver.failed(str(here.id))
                raise
            finally:
                _HERE.now = before

        return undo_all(
            [
                replace_attribute(convert, "get_compile_id", get_compile_id),
                replace_attribute(convert, "fullgraph_capture", fullgraph_capture),
                replace_attribute(module, "aot_compile_fullgraph", aot_compile_fullgraph),
            ]
        )

    return Hook("functions that aot_compile compiles", "torch._dynamo.aot_compile", "2.11 to 2.14", apply)


def precompile_hook(receiver: Receiver) -> Hook:
    """Makes each ``torch.compiler.precompile`` a compile."""

    def apply(module: types.ModuleType) -> Undo:
        compile_of = module.PrecompiledModule._compile

        @functools.wraps(compile_of)
        def _compile(self: Any, *args: Any, **kwargs: Any) -> Any:
            def run() -> Any:
                return compile_of(self, *args, **kwargs)

            return _without_dynamo(receiver, run, lambda: (self._fn, _code_of(self._fn)), lambda: self._gm)

        return replace_attribute(module.PrecompiledModule, "_compile", _compile)

    return Hook("functions that precompile compiles", "torch._precompile", "2.14", apply)


def standalone_hook(receiver: Receiver) -> Hook:
    """Makes each ``standalone_compile`` outside of a compile one, of the function that calls it."""

    def apply(module: types.ModuleType) -> Undo:
        compile_of = vars(module)["standalone_compile"]

        @functools.wraps(compile_of)
        def standalone_compile(gm: Any, *args: Any, **kwargs: Any) -> Any:
            def run() -> Any:
                return compile_of(gm, *args, **kwargs)

            return _without_dynamo(receiver, run, lambda: (None, _calling_code()), lambda: gm)

        return replace_attribute(module, "standalone_compile", standalone_compile)

    return Hook("graphs that standalone_compile compiles", "torch._inductor.standalone_compile", "2.11 to 2.14", apply)


def _without_dynamo(
    receiver: Receiver,
    run: Callable[[], Any],
    program: Callable[[], tuple[Any, types.CodeType]],
    graph: Callable[[], Any],
) -> Any:
    """Runs what compiles, as a compile of PyTorch's unless one goes on."""
    try:
        guards = vars(sys.modules["torch._guards"])
        context = guards["CompileContext"]
        if context.current_compile_id() is not None:
            here = None
        else:
            from torch._dynamo import convert_frame  # not loaded yet where nothing of Dynamo's was used

            here = Compiling(*program(), convert_frame.get_compile_id({}))
            inside = guards["compile_context"](context(here.id))
    except Exception as error:  # noqa: BLE001  a capture never fails as a whole
        receiver.missed(error)
        here = None
    if here is None:
        return run()
    with inside:
        before, _HERE.now = _HERE.now, here
        receiver.began(str(here.id))
        _HERE.now = before  # what is traced may call compiled functions, with compiles of their own
        try:
            made = run()
        except Exception:
            receiver.failed(str(here.id))
            raise
        receiver.ended(str(here.id), graph())
        return made


def _code_of(program: Any) -> types.CodeType:
    """The code of a function, or of a module's ``forward``."""
    function = getattr(program, "forward", program)
    code: types.CodeType = getattr(function, "__func__", function).__code__
    return code


def _calling_code() -> types.CodeType:
    """The innermost function that is neither PyTorch's nor irscope's."""
    codes = (frame.f_code for frame in callers())
    return next(code for code in codes if not is_torch_file(code.co_filename) and not is_irscope_file(code.co_filename))
