"""Keeps what a value run needs of each graph that Inductor compiles, and wraps the calls of the compiled code.

``_compile_fx_inner`` compiles one graph (forward, backward or inference); the object that it returns has the compiled
function in ``current_callable``, which is replaced by one that tells us before and after.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from irscope.internals.hooks import Hook
from irscope.internals.inductor_calls import settings_now
from irscope.internals.inductor_hooks import compile_hooks, replace_call
from irscope.values.run.compiled import Buffer, CompiledGraph
from irscope.values.run.interpreting import KeptGraph

WHAT = "values of nodes"


class CallWatcher:
    """Follows compilations and calls.

    Args:
        begins: Returns the compile that a graph belongs to; None if it is of no interest.
        called: Gets the compiled graph, the list of its inputs and a function that runs it; returns what that returned.
        guarded: Keeps what goes wrong here away from PyTorch.
    """

    def __init__(
        self,
        begins: Callable[[], str | None],
        called: Callable[[CompiledGraph, list[Any], Callable[[list[Any]], Any]], Any],
        guarded: Callable[[Callable[..., None]], Callable[..., None]],
    ) -> None:
        self._begins, self._called, self._guarded = begins, called, guarded
        self._local = threading.local()
        self._active = True

    def hooks(self) -> list[Hook]:
        """The hooks through which it sees compilations and calls."""
        return compile_hooks(self, lambda: self._stop)

    def _stop(self) -> None:
        self._active = False

    def begins(self, backward: bool) -> tuple[CompiledGraph | None, CompiledGraph | None]:
        """A graph's compilation begins; returns what is known about the one around it, and of this one."""
        outer, name = self._compiling, self._begins()
        self._local.compiled = compiled = CompiledGraph(name, backward) if name is not None else None
        return outer, compiled

    def ends(self, token: tuple[CompiledGraph | None, CompiledGraph | None], result: Any) -> None:
        """A compilation has ended; if it gave a result, the calls of that are watched from now on."""
        self._local.compiled, compiled = token
        if compiled is not None and result is not None:
            self._guarded(self._stand_at)(compiled, result)

    def lowered(self, lowering: Any) -> None:
        """Keep the graph and the buffers of the compilation that is under way."""
        if (compiled := self._compiling) is not None:
            self._guarded(_note_lowering)(compiled, lowering)

    def loaded(self, module: Any) -> None:
        """Keep the module with the compiled code of the compilation that is under way."""
        if (compiled := self._compiling) is not None:
            compiled.module = module

    @property
    def _compiling(self) -> CompiledGraph | None:
        return getattr(self._local, "compiled", None)

    def _stand_at(self, compiled: CompiledGraph, result: Any) -> None:
        def called(inputs: Any, run: Callable[[Any], Any]) -> Any:
            if not self._active or compiled.graph is None:
                return run(inputs)
            return self._called(compiled, inputs, run)

        if replace_call(result, called) and compiled.graph is None:
            raise LookupError("the graph that was lowered was not seen")


def _note_lowering(compiled: CompiledGraph, lowering: Any) -> None:
    compiled.graph = KeptGraph(lowering.module)
    compiled.config, compiled.settings = settings_now()
    names = {node.name for node in compiled.graph.graph.nodes}
    written_again = _mutated(lowering)
    for buffer in lowering.buffers:
        origin = buffer.get_origin_node()
        name = origin.name if origin is not None and origin.name in names else ""
        if buffer.get_name() in written_again:
            name = ""  # what it holds depends on when one looks
        try:
            dtype = str(buffer.get_dtype()).removeprefix("torch.")
        except (NotImplementedError, AttributeError):  # several outputs: its parts are their own buffers
            name, dtype = "", ""
        compiled.buffers[buffer.get_name()] = Buffer(buffer.get_name(), name, dtype)


def _mutated(lowering: Any) -> set[str]:
    """The buffers that something writes to in place after they were made."""
    found: set[str] = set()
    for each in [*lowering.buffers, *getattr(lowering, "operations", ())]:
        names = getattr(each, "get_mutation_names", None)
        if names is not None:
            found.update(names())
    return found
