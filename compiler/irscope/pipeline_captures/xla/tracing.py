"""What a program does with lazy tensors: each operation with its lines, and where PyTorch/XLA had to run a graph."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from irscope.capture.operation_graphs import Frames, Names, Operation, Tensor
from irscope.internals.exporting import flatten, unflatten
from irscope.internals.frames import callers
from irscope.internals.lazy_tensors import as_lazy, has_own_gradient, inner, instead_of, may_cut, target_of
from irscope.internals.modes import autograd_node, dispatch_mode, innermost_mode, sequence_number
from irscope.pipeline_captures.openxla.lowering import scope_of
from irscope.pipeline_captures.xla.device import TorchXla
from irscope.pipeline_captures.xla.frames import program_frames
from irscope.protocol import Origin
from irscope.usercode.user_files import is_user_file
from irscope.vocabulary.records import dataclass

Guard = Callable[[Callable[..., None]], Callable[..., None]]
_UPLOAD = "aten._to_copy.default"
_ALIAS = "aten.detach.default"
_SEEDED = "nondeterministic_seeded"
_INSTEAD = "PyTorch/XLA cannot compute"
_MOST_ARGUMENT = 60
_MOST_PLACES = 200_000
"""Operations of the forward whose lines are kept for a backward."""


@dataclass(frozen=True)
class Cut:
    """A place where PyTorch/XLA had to run a graph in the middle of the program.

    Args:
        operator: What needed the value: ``aten._local_scalar_dense.default``.
        is_fallback: Whether the operator ran on the host because XLA does not have it.
    """

    operator: str
    is_fallback: bool
    frames: Frames


class Tracer:
    """The operations of one call of a program and of its backward, or of a whole script.

    Args:
        before_cut: Called when a graph may be run in the middle, with the tensors whose values are needed.
        on_cut: Called when a graph was run in the middle, with the operations of that graph, the output last.
        is_script: Whether it sees a whole script, which moves its tensors to the device itself.
        guarded: Keeps an error in the book of operations from the script.

    Attributes:
        is_quiet: Whether operations are run without being kept.
    """

    def __init__(
        self, xla: TorchXla, stack: list[tuple[str, str]], before_cut: Callable[[list[Any]], None],
        on_cut: Callable[[Cut, list[Operation]], None], is_script: bool = False, guarded: Guard = lambda work: work,
    ) -> None:  # fmt: skip
        self._xla, self._stack, self._before_cut, self._on_cut = xla, stack, before_cut, on_cut
        self._is_script, self._guarded, self.is_quiet = is_script, guarded, False
        self._called: Any = _by_tensor()  # names of parameters
        self._begin()
        self._forward: dict[int, tuple[Frames, tuple[str, str] | None]] = {}
        self.draws_random_numbers = False
        self.uploaded = "input"
        self._note = ""

    def _begin(self) -> None:
        self._names, self._seen = Names(), 0
        self._of_tensor: Any = _by_tensor()
        self._operations: dict[str, Operation] = {}
        self._ready: set[str] = set()

    def restart(self) -> None:
        """Forgets all operations if each was computed: the next graph has the names that the last one had."""
        if not self.pending():
            self._begin()
        while len(self._forward) > _MOST_PLACES:
            del self._forward[next(iter(self._forward))]

    def name(self, module: Any) -> None:
        """The parameters of a module have names."""
        for name, tensor in (*module.named_parameters(), *module.named_buffers()):
            self.call(tensor, f"p_{name}")

    def call(self, tensor: Any, name: str) -> None:
        """An input has a name, if it is a tensor of the device."""
        if isinstance(tensor, sys.modules["torch"].Tensor) and tensor.device.type == "xla":
            self._called[inner(tensor)] = name

    def mode(self) -> Any:
        """A mode that sees each operation."""
        tracer = self
        base: Any = dispatch_mode()

        class Mode(base):  # type: ignore[misc]
            @classmethod
            def ignore_compile_internals(cls) -> bool:
                """Whether Dynamo may compile in this mode."""
                return True

            def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                other = None if tracer.is_quiet else tracer.instead_of(func, args)
                if other is None:
                    return tracer.seen(func, args, kwargs or {})
                with self, tracer.noting(f"{_INSTEAD} {target_of(func)}"):
                    return other(*args, **(kwargs or {}))

        return Mode()

    def pending(self, of: Iterable[Any] | None = None) -> list[str]:
        """The operations whose results are in use and were not computed yet.

        Args:
            of: The tensors that count; None: all.
        """
        waiting = [tensor for tensor, name in self._of_tensor.items() if name not in self._ready]
        done = {id(one) for one in waiting} - {id(one) for one in self._xla.unfinished(waiting)}
        self._ready.update(self._of_tensor[one] for one in waiting if id(one) in done)
        names = self._of_tensor.values() if of is None else map(self._of_tensor.get, of)
        found = {name for name in names if name is not None and name not in self._ready}
        return [name for name in self._operations if name in found]

    def live(self, roots: Iterable[str] | None = None) -> list[Any]:
        """The tensors of these operations, of which only some count where they are given."""
        wanted = set(self.pending() if roots is None else roots)
        return [tensor for tensor, name in self._of_tensor.items() if name in wanted]

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
            one
            if name not in self._ready or one.op == "placeholder"
            else Operation(name, "placeholder", name, value=one.value)
            for name, one in self._operations.items()
            if name in needed
        ]
        operations.sort(key=lambda one: one.op != "placeholder")
        return [*operations, Operation("output", "output", "output", roots, roots)]

    def computed(self, roots: Iterable[str]) -> None:
        """These operations have been computed."""
        self._ready.update(roots)

    def instead_of(self, func: Any, args: tuple[Any, ...]) -> Callable[..., Any] | None:
        """What runs in place of an operation that fails in PyTorch/XLA; a script that uses PyTorch/XLA itself fails, too."""
        is_lazy = not self._is_script and bool(self._tensors(args))
        return instead_of(func, args) if is_lazy else None

    @contextlib.contextmanager
    def noting(self, note: str) -> Iterator[None]:
        """A comment after each operation that is seen meanwhile."""
        before, self._note = self._note, note
        try:
            yield
        finally:
            self._note = before

    def seen(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Runs an operation, and keeps what it is."""
        target = target_of(func)
        given = self._tensors((args, kwargs))
        if self.is_quiet or (not given and _device_in(kwargs) != "xla"):
            return _made(func(*args, **kwargs), given)
        frames, module = self._place()
        self._seen += 1
        name = self._names.of(f"{self._seen}", _operator(target))
        qualified = "::".join(str(func).split(".")[:2])
        if may_cut(func, kwargs):
            self._before_possible_cut(given)
        executed, fallbacks = self._xla.executed(), self._xla.fallbacks(qualified)
        is_move = target == _ALIAS or (target == _UPLOAD and not given)
        with contextlib.nullcontext() if is_move else self._xla.scope(scope_of(name, _place_in(frames))):
            result = func(*args, **kwargs)
        results = [inner(tensor) for tensor in self._tensors(result)]
        cut = Cut(target, bool(results) and self._xla.fallbacks(qualified) > fallbacks, frames)
        if self._xla.executed() > executed or cut.is_fallback:
            self._cut(cut, given)
        if results:
            self._guarded(self._keep)(name, target, (args, kwargs), given, results, frames, module)
            if cut.is_fallback or self._xla.is_eager():
                self._ready.add(name)
            self.draws_random_numbers |= _draws(func, target)
        return _made(result, given)

    def _before_possible_cut(self, given: list[Any]) -> None:
        if needed := [tensor for tensor in given if self._is_pending(tensor)]:
            self._before_cut(needed)

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
                self._of_tensor[one] = self._input(one, frames if self._is_script else ())
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
        self._operations[name] = Operation(
            name, "call_function", target, inputs, written, value, frames, module, note=self._note
        )
        for one in results:
            self._of_tensor[one] = name

    def _input(self, tensor: Any, frames: Frames = ()) -> str:
        name = self._names.of(f"input {len(self._operations)}", self._called.get(tensor) or self.uploaded)
        self._operations[name] = Operation(name, "placeholder", name, value=_tensor(tensor), frames=frames)
        self._ready.add(name)
        return name

    def leave(self, mode: Any) -> bool:
        """Ends a mode if it is the innermost one; whether it was."""
        if innermost_mode() is not mode:
            return False
        mode.__exit__(None, None, None)
        return True

    def _place(self) -> tuple[Frames, tuple[str, str] | None]:
        """The stack and the module of an operation; in a backward those of the forward's operation."""
        if (node := autograd_node()) is not None:
            return self._forward.get(node, ((), None))
        found = program_frames(callers()), self._stack[-1] if self._stack else None
        self._forward[sequence_number()] = found
        return found

    def _tensors(self, values: Any) -> list[Any]:
        kind: Any = sys.modules["torch"].Tensor
        plain = kind.__torch_dispatch__  # not that of a fake tensor, which has no operations
        return [
            one
            for one in flatten(values)[0]
            if isinstance(one, kind) and type(one).__torch_dispatch__ is plain and one.device.type == "xla"
        ]

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


def _made(result: Any, given: list[Any]) -> Any:
    """The result of an operation.  If it is made of no other tensor of the device, it is such a tensor as PyTorch/XLA makes
    where no mode is on: what is written to a view of it is written to itself."""
    if given:
        return result
    leaves, nesting = flatten(result)
    return unflatten([as_lazy(one) for one in leaves], nesting)


def _by_tensor() -> Any:
    return sys.modules["torch.utils.weak"].WeakIdKeyDictionary()


def _device_in(kwargs: Mapping[str, Any]) -> str:
    """The type of the device that an operation is asked for."""
    device = kwargs.get("device")
    return str(getattr(device, "type", device) or "").partition(":")[0]


def _operator(target: str) -> str:
    """``add`` of ``aten.add.Tensor``."""
    return target.split(".")[1] if "." in target else target


def _draws(func: Any, target: str) -> bool:
    """Whether an operation draws random numbers; attention has the tag of those that do also where it drops nothing."""
    tags = {getattr(tag, "name", "") for tag in getattr(func, "tags", ())}
    return _SEEDED in tags and "scaled_dot_product" not in target
