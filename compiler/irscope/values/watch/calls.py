"""The calls of compiled graphs and the steps of optimizers since a copy of the parameters, to be run again.

The user's Python cannot be run again, so what it passed on is kept.  An input of a call is one of these:

- a parameter, as it is after the optimizer steps before the call: `Parameter`;
- what an earlier call of the same step returned, unchanged since then: `Output`;
- anything else: a copy.

So a backward costs no memory (what its forward saved is made again), and a step costs its batch.  Every `INTERVAL` steps
the parameters and the state of the optimizers are copied.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from irscope.internals.training_steps import versions_kept
from irscope.values.run.compiled import CompiledGraph
from irscope.values.run.copies import clones
from irscope.values.run.interpreting import copies_to_input, mutates

INTERVAL = 8
"""Steps from one copy of the parameters to the next."""

Run = Callable[[list[Any]], Any]


@dataclass(frozen=True)
class Parameter:
    """A parameter at the time of the call."""

    tensor: Any


@dataclass(frozen=True)
class Output:
    """An output of an earlier call of the step."""

    call: Call
    number: int


@dataclass(eq=False)
class Call:
    """One call of a compiled graph.

    Args:
        run: The compiled code.
        inputs: `Parameter`, `Output`, copies of tensors, and other values.
    """

    compiled: CompiledGraph
    run: Run
    step: int
    inputs: list[Any]
    states: tuple[Any, list[Any]]


@dataclass(eq=False)
class OptimizerStep:
    """One step of an optimizer: the gradients, as the inputs of a call, and the numbers of its groups (learning rates)."""

    optimizer: Any
    gradients: list[tuple[Any, Any]]
    groups: list[dict[str, Any]]


@dataclass(eq=False)
class Copy:
    """The parameters and the state of the optimizers at the begin of a step."""

    parameters: list[tuple[Any, Any]]
    states: list[tuple[Any, dict[Any, dict[str, Any]]]]

    def restore(self) -> None:
        """Sets the parameters, in place, without a new version of them; the state of optimizers gets copies."""
        for tensor, copy in self.parameters:
            tensor.data.copy_(copy)
        for optimizer, states in self.states:
            optimizer.state.clear()
            optimizer.state.update({tensor: _copied(state) for tensor, state in states.items()})


@dataclass(eq=False)
class Step:
    """What happened in one step."""

    number: int
    copy: Copy | None = None
    events: list[Call | OptimizerStep] = field(default_factory=list)
    bytes: int = 0


class Recorder:
    """Keeps the calls of the last steps.

    Args:
        budget: Bytes of all copies.  Where it does not suffice, fewer steps are kept.
    """

    def __init__(self, budget: int) -> None:
        self._torch: Any = sys.modules["torch"]
        self._budget = budget
        self._steps = [Step(1)]
        self._parameters: dict[int, Any] = {}  # address → weak reference
        self._optimizers: list[Any] = []
        # By address: a reference to the memory, how the tensor looked, and what it is, or its copy.
        self._made: dict[int, tuple[Any, Any, Output]] = {}
        self._kept: dict[int, tuple[Any, Any, Any]] = {}
        self.why_not = ""
        """Why the calls of the step that is going on cannot be run again; empty: they can."""

    @property
    def step(self) -> int:
        """The number of the step that is going on, from 1."""
        return self._steps[-1].number

    def begin_call(self, compiled: CompiledGraph, run: Run, inputs: Sequence[Any]) -> Call:
        """A compiled graph is about to be called."""
        written = _written(compiled)
        kept = [self._keep(value, number in written) for number, value in enumerate(inputs)]
        call = Call(compiled, run, self.step, kept, states_now())
        self._add(call)
        if any(isinstance(self._known(inputs[number]), Parameter) for number in written if number < len(inputs)):
            self._cut()  # by a compiled optimizer: no step of one will be seen
        return call

    def end_call(self, call: Call, outputs: Sequence[Any]) -> None:
        """It has returned."""
        for number, value in enumerate(outputs):
            if isinstance(value, self._torch.Tensor) and (address := _address(value)):
                self._made[address] = (_reference(value), _looks(value), Output(call, number))

    def before_step(self, optimizer: Any, closure: Any) -> None:
        """An optimizer is about to change the parameters."""
        if closure is not None:
            self._cut()
            return
        gradients = []
        for group in optimizer.param_groups:
            for tensor in group["params"]:
                self._parameters[_address(tensor)] = weakref.ref(tensor)
                if tensor.grad is not None:
                    gradients.append((tensor, self._keep(tensor.grad, False)))
        if not any(each is optimizer for each in self._optimizers):
            self._optimizers.append(optimizer)
        self._add(OptimizerStep(optimizer, gradients, _groups(optimizer)))

    def after_step(self) -> None:
        """The parameters have changed: another step begins."""
        self._made.clear()
        self._kept.clear()
        self.why_not = ""
        step = Step(self.step + 1)
        self._steps.append(step)
        since = next((step.number - each.number for each in reversed(self._steps) if each.copy is not None), INTERVAL)
        if since >= INTERVAL:
            size = sum(_bytes(tensor) for tensor in self._tensors()) * 3  # Adam keeps two more of each
            if size <= self._budget:
                step.copy = self._copy()
                step.bytes += size
                starts = [number for number, each in enumerate(self._steps) if each.copy is not None]
                del self._steps[: starts[-2] if len(starts) > 1 else 0]
        self._fit()

    def inputs(self, call: Call, made: Mapping[Call, Sequence[Any]]) -> list[Any]:
        """Inputs for another run of a call, which may change them; ``made``: what the earlier calls of its step gave."""
        return clones([_again(value, made) for value in call.inputs])

    def again(self, target: Call, use: Callable[[list[Any]], None]) -> bool | None:
        """Runs the calls before ``target`` again from the oldest copy of the parameters, and then ``use`` with its inputs.

        Returns whether the parameters became what they are now, bit for bit; None if the copy is of the same step, or
        there is none.  The parameters and the optimizers are afterwards as they were.
        """
        start = next((number for number, each in enumerate(self._steps) if each.copy is not None), None)
        if start is None or self._steps[start].number >= target.step:
            return None
        copy, now = self._steps[start].copy, self._copy()
        assert copy is not None
        live = [(optimizer, dict(optimizer.state), _groups(optimizer)) for optimizer in self._optimizers]
        try:
            copy.restore()
            made = self._run_until(target, self._steps[start:])
            same = all(_same_bits(tensor, value) for tensor, value in now.parameters)
            use(self.inputs(target, made))
        finally:
            for tensor, value in now.parameters:
                tensor.data.copy_(value)
            for optimizer, states, groups in live:
                optimizer.state.clear()
                optimizer.state.update(states)
                _set_groups(optimizer, groups)
        return same

    def first_of_window(self) -> int:
        """The step of the oldest copy of the parameters."""
        return next((each.number for each in self._steps if each.copy is not None), self.step)

    def in_step(self, target: Call) -> list[Any]:
        """The inputs of a call of the step that is going on, from the parameters as they are."""
        return self.inputs(target, self._run_until(target, self._steps[-1:]))

    def _run_until(self, target: Call, steps: Sequence[Step]) -> dict[Call, Sequence[Any]]:
        made: dict[Call, Sequence[Any]] = {}
        for step in steps:
            made = {}
            for event in step.events:
                if event is target:
                    return made
                if isinstance(event, OptimizerStep):
                    self._step_again(event, made)
                else:
                    set_states(event.states)
                    made[event] = outputs_of(event.run(self.inputs(event, made)))
        return made

    def _step_again(self, event: OptimizerStep, made: Mapping[Call, Sequence[Any]]) -> None:
        before = [(tensor, tensor.grad) for group in event.optimizer.param_groups for tensor in group["params"]]
        try:
            for tensor, _ in before:
                tensor.grad = None
            for tensor, gradient in event.gradients:
                tensor.grad = _again(gradient, made).detach().clone()
            _set_groups(event.optimizer, event.groups)
            with versions_kept([tensor for tensor, _ in before]):
                event.optimizer.step()
        finally:
            for tensor, gradient in before:
                tensor.grad = gradient

    def _keep(self, value: Any, is_written: bool) -> Any:
        """What stands for an input of a call."""
        if not isinstance(value, self._torch.Tensor):
            return value
        known = self._known(value)
        if known is not None and not (is_written and isinstance(known, Parameter)):
            return known
        address, looks = _address(value), _looks(value)
        before = self._kept.get(address)
        if before is not None and before[1] == looks and not before[0].expired():
            copy = before[2]
        else:
            copy = clones([value])[0]
            self._steps[-1].bytes += _bytes(value)
            self._kept[address] = (_reference(value), looks, copy)
        if is_written:
            self._kept.pop(address, None)
        return copy

    def _known(self, value: Any) -> Parameter | Output | None:
        if not isinstance(value, self._torch.Tensor) or not (address := _address(value)):
            return None
        if isinstance(value, self._torch.nn.Parameter):
            self._parameters.setdefault(address, weakref.ref(value))
        reference = self._parameters.get(address)
        if reference is not None and (tensor := reference()) is not None and _address(tensor) == address:
            return Parameter(tensor) if _layout(tensor) == _layout(value) else None
        made = self._made.get(address)
        if made is not None and not made[0].expired() and made[1] == _looks(value):
            return made[2]
        return None

    def _add(self, event: Call | OptimizerStep) -> None:
        self._steps[-1].events.append(event)
        self._fit()

    def _fit(self) -> None:
        while len(self._steps) > 1 and sum(each.bytes for each in self._steps) > self._budget:
            del self._steps[0]
        if self._steps[-1].bytes > self._budget:
            self._steps[-1].events.clear()
            self.why_not = "the calls of one step need more than --replay-memory"

    def _cut(self) -> None:
        """What was before cannot be continued from."""
        del self._steps[:-1]
        self._steps[-1].copy = None

    def _tensors(self) -> list[Any]:
        return [tensor for each in self._optimizers for group in each.param_groups for tensor in group["params"]]

    def _copy(self) -> Copy:
        states = [(o, {tensor: _copied(state) for tensor, state in o.state.items()}) for o in self._optimizers]
        return Copy([(tensor, tensor.detach().clone()) for tensor in self._tensors()], states)


def states_now() -> tuple[Any, list[Any]]:
    """The states of the random generators of the CPU and of all GPUs in use."""
    torch: Any = sys.modules["torch"]
    cuda = torch.cuda
    return torch.get_rng_state(), cuda.get_rng_state_all() if cuda.is_available() and cuda.is_initialized() else []


def set_states(states: tuple[Any, list[Any]]) -> None:
    """Sets the random generators to what they were."""
    torch: Any = sys.modules["torch"]
    torch.set_rng_state(states[0])
    if states[1]:
        torch.cuda.set_rng_state_all(states[1])


def outputs_of(returned: Any) -> list[Any]:
    """The outputs of compiled code as a list."""
    return list(returned) if isinstance(returned, list | tuple) else [returned]


def _written(compiled: CompiledGraph) -> frozenset[int]:
    """Which inputs the graph writes to.  A custom operation that writes does so to a placeholder, too."""
    if compiled.written is None:
        nodes = compiled.graph.graph.nodes
        order = {node: number for number, node in enumerate(node for node in nodes if node.op == "placeholder")}
        targets = [
            used
            for node in nodes
            if mutates(node) or copies_to_input(node)
            for used in (node.all_input_nodes[:1] if copies_to_input(node) else node.all_input_nodes)
        ]
        compiled.written = frozenset(order[node] for node in targets if node in order)
    return compiled.written


def _again(value: Any, made: Mapping[Call, Sequence[Any]]) -> Any:
    if isinstance(value, Parameter):
        return value.tensor
    return made[value.call][value.number] if isinstance(value, Output) else value


def _address(tensor: Any) -> int:
    try:
        return int(tensor.data_ptr())
    except RuntimeError:
        return 0


def _reference(tensor: Any) -> Any:
    return sys.modules["torch.multiprocessing.reductions"].StorageWeakRef(tensor.untyped_storage())


def _layout(tensor: Any) -> Any:
    return tuple(tensor.shape), tensor.stride(), tensor.dtype


def _looks(tensor: Any) -> Any:
    return _layout(tensor), 0 if tensor.is_inference() else tensor._version


def _bytes(tensor: Any) -> int:
    return int(tensor.numel() * tensor.element_size())


def _copied(state: Mapping[str, Any]) -> dict[str, Any]:
    torch: Any = sys.modules["torch"]
    return {key: value.clone() if isinstance(value, torch.Tensor) else value for key, value in state.items()}


def _groups(optimizer: Any) -> list[dict[str, Any]]:
    return [_copied({key: group[key] for key in group if key != "params"}) for group in optimizer.param_groups]


def _set_groups(optimizer: Any, groups: Sequence[Mapping[str, Any]]) -> None:
    for group, values in zip(optimizer.param_groups, groups, strict=True):
        group.update(_copied(values))


def _same_bits(one: Any, other: Any) -> bool:
    torch: Any = sys.modules["torch"]
    views = [each.detach().contiguous().view(-1).view(torch.uint8) for each in (one, other)]
    return bool(torch.equal(*views))
