"""What a program does with lazy tensors: each operation with its lines, and where PyTorch/XLA had to run a graph."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from irscope.capture.operation_graphs import Frames, Names, Operation, Tensor
from irscope.internals.exporting import flatten
from irscope.internals.frames import callers
from irscope.internals.lazy_tensors import has_own_gradient, inner, may_cut
from irscope.internals.modes import autograd_node, dispatch_mode, sequence_number
from irscope.pipelines.openxla.lowering import scope_of
from irscope.pipelines.xla.device import TorchXla
from irscope.pipelines.xla.frames import program_frames
from irscope.protocol import Origin
from irscope.usercode.user_files import is_user_file
from irscope.vocabulary.records import dataclass

_UPLOAD = "aten._to_copy.default"
_ALIAS = "aten.detach.default"
_SEEDED = "nondeterministic_seeded"
_MOST_ARGUMENT = 60


@dataclass(frozen=True)
class Cut:
    """A place where PyTorch/XLA had to run a graph in the middle of the program.

    Parameters
    ----------
    operator
        What needed the value: ``aten._local_scalar_dense.default``.
    is_fallback
        Whether the operator ran on the host because XLA does not have it.
    """

    operator: str
    is_fallback: bool
    frames: Frames


class Tracer:
    """The operations of one call of a program, and of its backward.

    Parameters
    ----------
    before_cut
        Called when a graph may be run in the middle, with the tensors whose values are needed.
    on_cut
        Called when a graph was run in the middle, with the operations of that graph, the output last.
    """

    def __init__(
        self, xla: TorchXla, stack: list[tuple[str, str]], before_cut: Callable[[list[Any]], None],
        on_cut: Callable[[Cut, list[Operation]], None],
    ) -> None:  # fmt: skip
        self._xla, self._stack, self._before_cut, self._on_cut = xla, stack, before_cut, on_cut
        self._names = Names()
        self._of_tensor: Any = sys.modules["torch.utils.weak"].WeakIdKeyDictionary()
        self._operations: dict[str, Operation] = {}
        self._seen = 0
        self._ready: set[str] = set()
        self._forward: dict[int, tuple[Frames, tuple[str, str] | None]] = {}
        self.draws_random_numbers = False
        self.uploaded = "input"

    def mode(self) -> Any:
        """A mode that sees each operation."""
        tracer = self
        base: Any = dispatch_mode()

        class Mode(base):  # type: ignore[misc]
            def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                return tracer.seen(func, args, kwargs or {})

        return Mode()

    def pending(self) -> list[str]:
        """The operations whose results are in use and were not computed yet."""
        found = dict.fromkeys(name for name in self._of_tensor.values() if name not in self._ready)
        return [name for name in self._operations if name in found]

    def live(self) -> list[Any]:
        """The tensors of these operations."""
        return [tensor for tensor, name in self._of_tensor.items() if name not in self._ready]

    def graph(self, roots: Iterable[str]) -> list[Operation]:
        """The graph that computes some operations from what was computed before, inputs first and the output last."""
        roots = tuple(dict.fromkeys(roots))
        needed, todo = set[str](), [*roots]
        while todo:
            name = todo.pop()
            if name not in needed:
                needed.add(name)
                todo += self._operations[name].inputs if name not in self._ready else ()
        operations = [
            one if name not in self._ready else Operation(name, "placeholder", name, value=one.value)
            for name, one in self._operations.items()
            if name in needed
        ]
        operations.sort(key=lambda one: one.op != "placeholder")
        return [*operations, Operation("output", "output", "output", roots, roots)]

    def computed(self, roots: Iterable[str]) -> None:
        """These operations have been computed."""
        self._ready.update(roots)

    def seen(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Runs an operation, and keeps what it is."""
        target = str(func)
        given = self._tensors((args, kwargs))
        frames, module = self._place()
        self._seen += 1
        name = self._names.of(f"{self._seen}", target.split(".")[1] if "." in target else target)
        qualified = "::".join(target.split(".")[:2])
        if may_cut(func, kwargs) and (needed := [one for one in given if self._is_pending(one)]):
            self._before_cut(needed)
        executed, fallbacks = self._xla.executed(), self._xla.fallbacks(qualified)
        is_move = target == _ALIAS or (target == _UPLOAD and not given)
        with contextlib.nullcontext() if is_move else self._xla.scope(scope_of(name, _place_in(frames))):
            result = func(*args, **kwargs)
        results = self._tensors(result)
        cut = Cut(target, bool(results) and self._xla.fallbacks(qualified) > fallbacks, frames)
        if self._xla.executed() > executed or cut.is_fallback:
            self._cut(cut, given)
        if results:
            self._keep(name, target, (args, kwargs), given, results, frames, module)
            if cut.is_fallback:
                self._ready.add(name)
            tags = {getattr(tag, "name", "") for tag in getattr(func, "tags", ())}
            self.draws_random_numbers |= _SEEDED in tags and "scaled_dot_product" not in target
        return result

    def called(self, function: str, given: Any, run: Callable[[], Any]) -> Any:
        """Runs a function that PyTorch/XLA may replace as a whole; if it does, it is one operation."""
        if not has_own_gradient(function):
            return run()
        frames, module = self._place()
        name = self._names.of(f"function {len(self._operations)}", function)
        with self._xla.scope(scope_of(name, _place_in(frames))):
            result = run()
        tensors, results = ([inner(one) for one in self._tensors(each)] for each in (given, result))
        if results and all(one not in self._of_tensor for one in results):
            self._keep(name, f"aten.{function}", given, tensors, results, frames, module)
        return result

    def _is_pending(self, tensor: Any) -> bool:
        name = self._of_tensor.get(tensor)
        return name is not None and name not in self._ready

    def _cut(self, cut: Cut, given: list[Any]) -> None:
        names = [self._of_tensor[one] for one in given if one in self._of_tensor]
        roots = [name for name in names if name not in self._ready]
        if roots or cut.is_fallback:
            self._on_cut(cut, self.graph(roots) if roots else [])
            self.computed(roots)

    def _keep(
        self, name: str, target: str, given: Any, tensors: list[Any], results: list[Any], frames: Frames,
        module: tuple[str, str] | None,
    ) -> None:  # fmt: skip
        if target == _UPLOAD and not tensors:
            for one in results:
                self._of_tensor[one] = self._input(one)
            return
        for one in tensors:
            if one not in self._of_tensor:
                self._of_tensor[one] = self._input(one)
        inputs = tuple(dict.fromkeys(self._of_tensor[one] for one in tensors))
        if target == _ALIAS:
            self._of_tensor[results[0]] = inputs[0]
            return
        written = tuple(self._written(one) for one in given[0])
        value = _tensor(results[0]) if len(results) == 1 else None
        self._operations[name] = Operation(name, "call_function", target, inputs, written, value, frames, module)
        for one in results:
            self._of_tensor[one] = name

    def _input(self, tensor: Any) -> str:
        name = self._names.of(f"input {len(self._operations)}", self.uploaded)
        self._operations[name] = Operation(name, "placeholder", name, value=_tensor(tensor))
        self._ready.add(name)
        return name

    def _place(self) -> tuple[Frames, tuple[str, str] | None]:
        """The stack and the module of an operation; in a backward those of the forward's operation."""
        if (node := autograd_node()) is not None:
            return self._forward.get(node, ((), None))
        found = program_frames(callers()), self._stack[-1] if self._stack else None
        self._forward[sequence_number()] = found
        return found

    def _tensors(self, values: Any) -> list[Any]:
        kind: Any = sys.modules["torch"].Tensor
        return [one for one in flatten(values)[0] if isinstance(one, kind) and one.device.type == "xla"]

    def _written(self, value: Any) -> str:
        if isinstance(value, (list, tuple)):
            return f"[{', '.join(self._written(one) for one in value)}]"
        if isinstance(value, sys.modules["torch"].Tensor):
            value = inner(value)
            return str(self._of_tensor[value]) if value in self._of_tensor else "None"
        return repr(value)[:_MOST_ARGUMENT]


def _place_in(frames: Frames) -> Origin | None:
    return next((Origin(file, line) for file, line, _ in reversed(frames) if is_user_file(file)), None)


def _tensor(value: Any) -> Tensor:
    return Tensor(str(value.dtype).removeprefix("torch."), tuple(int(size) for size in value.shape))
