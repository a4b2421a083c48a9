"""The step from the dynamo graph to AOTAutograd's graph: decompositions, functionalization and the formulas of gradients.

Both graphs are run in float64 on the inputs of the call, as passes are checked (`irscope.values.blame.blaming`), and draw the
same random numbers (`irscope.values.run.shared_random`).  Compared are the results, what was written into inputs, and, where
AOTAutograd traced a backward, the gradients of made-up tangents: those of the dynamo graph are autograd's own.

AOTAutograd's descriptors say which input and output of the one is which of the other, ``meta["desc"]``; which node
became which by ``from_node``, ``seq_nr`` and ``partitioner_tag``.  All of them were checked on torch 2.11 and 2.13; if one
is missing, a note says what is not told.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from irscope.pipelines.dynamo_stages import DYNAMO_GRAPH
from irscope.pipelines.inductor.stages import JOINT_GRAPH, PRE_GRAD_GRAPH
from irscope.values.blame.blaming import TOKENS, Blame, Version, descriptions
from irscope.values.check.comparing import MISSING
from irscope.values.check.measuring import NOISE, noise_floor, same_in_float64
from irscope.values.run.copies import clones
from irscope.values.run.interpreting import KeptGraph, NodeFailed, Values
from irscope.values.run.shared_random import Draws, same_draws
from irscope.values.run.subgraph_compile import Region, region_of
from irscope.vocabulary.records import dataclass

STEP = "dynamo graph → {} graph"
_CHECKED = "(checked on torch 2.11 and 2.13)"


class CannotCompare(Exception):
    """The two graphs cannot be compared; the message says why."""


@dataclass
class _Run:
    """A graph that was run in float64.

    Args:
        values: By node, each as it was when it was made.
        inputs, outputs: What the placeholders held in the end, by name; what came out.
        failed: Why nodes could not be run.
        leaves, live: For a run for gradients: the leaves that get them, and the values with their history.
    """

    values: dict[Any, Any] = field(default_factory=dict)
    inputs: dict[str, Any] = field(default_factory=dict)
    outputs: list[Any] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    drawn: list[tuple[int, ...]] = field(default_factory=list)
    leaves: dict[str, Any] = field(default_factory=dict)
    live: dict[Any, Any] = field(default_factory=dict)


@dataclass
class StepCheck:
    """The step between two graphs at one call.

    Args:
        before, after: The dynamo graph, and AOTAutograd's: a joint one where it has tangents.
        inputs: Gives fresh copies of the inputs of the call, by names of the placeholders of ``after``.
    """

    before: KeptGraph
    after: KeptGraph
    inputs: Callable[[], Mapping[str, Any]]
    notes: list[str] = field(default_factory=list)
    tangents: dict[str, Any] = field(default_factory=dict)
    """Made up for the check, by names of the placeholders of ``after``; filled by `blame`."""

    def __post_init__(self) -> None:
        self._torch: Any = sys.modules["torch"]
        self._below = self._pairs()
        output = _output(self.after)
        values = output.args[0] if isinstance(output.args[0], list | tuple) else [output.args[0]]
        self._out = list(zip(descriptions(output) or [None] * len(values), values, strict=True))

    # --- what is what -------------------------------------------------------------------------------------------------

    def _pairs(self) -> dict[str, str]:
        """Placeholders of the dynamo graph (and parameters in it, by path) → placeholders of the other."""
        names = self.before.placeholders
        found: dict[str, str] = {}
        for node in self.after.graph.nodes:
            if node.op != "placeholder":
                continue
            desc = node.meta.get("desc")
            kind = type(desc).__name__
            if kind == "PlainAOTInput" and desc.idx < len(names):
                found[names[desc.idx]] = node.name
            elif kind in ("ParamAOTInput", "BufferAOTInput"):
                found[desc.target] = node.name
            elif desc is None:
                raise CannotCompare(f"its inputs are not described: nodes have no 'desc' {_CHECKED}")
            elif kind not in ("TangentAOTInput", *TOKENS):
                raise CannotCompare(f"its input {node.name} is {kind}")
        if missing := [name for name in names if name not in found]:
            raise CannotCompare(f"{missing[0]} has no counterpart in it")
        return found

    def dynamo_inputs(self) -> dict[str, Any]:
        """The inputs of the call by names of the dynamo graph."""
        given = self.inputs()
        return {name: given[other] for name, other in self._below.items() if other in given}

    # --- the check ----------------------------------------------------------------------------------------------------

    def blame(self) -> Blame | None:
        """Where the step changed what is computed; None if it did not.  Raises CannotCompare."""
        found = self._compare(Draws())
        if found is not None and self._one.drawn:
            # Whether `bernoulli_` belongs to a dropout is not told; only what differs both ways differs.
            found = self._compare(Draws(in_place_below=True)) and found
        return found

    def _compare(self, draws: Draws) -> Blame | None:
        joint = [
            node for node in self.after.graph.nodes if node.op == "placeholder" and node.name.startswith("tangents_")
        ]
        self._one = one = self._run_dynamo(draws, bool(joint))
        if joint:
            self._make_tangents(joint, one)
        other = self._run_after(Draws(draws.in_place_below))
        if one.drawn != other.drawn:
            raise CannotCompare("the two draw random numbers in another order")
        for sentence in (*one.failed[:1], *other.failed[:1]):
            self._note(f"In the step from the dynamo graph not all could be compared: {sentence}.")
        if max(self._results(one, other), self._gradients(one, other)) <= 1:
            return None
        noisy = self._run_after(Draws(draws.in_place_below), NOISE)
        if (worst := self._results(one, other, noisy)) > 1:
            return self._forward_blame(one, other, noisy, worst)
        worst = self._gradients(one, other, noisy)
        return self._backward_blame(one, other, worst) if worst > 1 else None

    def _has_backward(self) -> bool:
        """Whether anything is computed of the tangents; the gradient of x + 1 is the tangent itself."""
        tangents = (node for node in self.after.graph.nodes if node.name.startswith("tangents_"))
        return any(user.op != "output" for node in tangents for user in node.users)

    def _tells(self, *keys: str) -> bool:
        """Whether AOTAutograd's nodes carry what is needed to find the node to blame; else a note says so."""
        missing = [key for key in keys if not any(key in node.meta for node in self.after.graph.nodes)]
        if missing:
            self._note(
                f"From which node on it differs is unknown: nodes have no {' and no '.join(missing)} {_CHECKED}."
            )
        return not missing

    def _note(self, sentence: str) -> None:
        if sentence not in self.notes:
            self.notes.append(sentence)

    def _results(self, one: _Run, other: _Run, noisy: _Run | None = None) -> float:
        """The largest difference of results and of what was written into inputs; ``noisy``: the other, disturbed."""
        found, moved = [0.0], dict[str, tuple[Any, Any]]()
        for (desc, _), value, shaken in zip(self._out, other.outputs, (noisy or other).outputs, strict=True):
            kind = type(desc).__name__
            if kind == "PlainAOTOutput" and desc.idx < len(one.outputs):
                found.append(_apart(one.outputs[desc.idx], value, shaken))
            elif kind == "InputMutationAOTOutput" and type(desc.mutated_input).__name__ == "PlainAOTInput":
                moved[self.before.placeholders[desc.mutated_input.idx]] = value, shaken
        for name, below_ in self._below.items():
            # What was written into an input is not known where a node that may have done it could not be run.
            if name in one.inputs and below_ in other.inputs and not one.failed and not other.failed:
                own = other.inputs[below_], (noisy or other).inputs[below_]
                found.append(_apart(one.inputs[name], *moved.get(name, own)))
        return max(found)

    def _forward_blame(self, one: _Run, other: _Run, noisy: _Run, ratio: float) -> Blame:
        """The first node of the dynamo graph whose value differs there."""
        is_joint = bool(self.tangents) or "tangents_1" in self.after.placeholders
        stage = "forward" if is_joint else "inference"
        if not self._tells("from_node", *(["partitioner_tag"] if self._has_backward() else [])):
            return Blame(DYNAMO_GRAPH.name, STEP.format(stage), "", ratio, self.before, self.after)
        last: dict[str, list[tuple[Any, Any]]] = {}
        for node, value in other.values.items():
            if not _is_backward(node):
                for name in _sources(node):
                    last.setdefault(name, []).append((value, noisy.values[node]))
        for node, value in one.values.items():
            alike = [each for each in last.get(node.name, ()) if _shape(each[0]) == _shape(value)]
            if alike and not isinstance(value, list | tuple) and (off := _apart(value, *alike[-1])) > 1:
                return Blame(DYNAMO_GRAPH.name, STEP.format(stage), node.name, off, self.before, self.after)
        return Blame(DYNAMO_GRAPH.name, STEP.format(stage), "", ratio, self.before, self.after)

    # --- gradients ----------------------------------------------------------------------------------------------------

    def _make_tangents(self, nodes: Sequence[Any], one: _Run) -> None:
        for number, node in enumerate(nodes):
            desc: Any = getattr(node.meta.get("desc"), "output", None)
            value = one.outputs[desc.idx] if type(desc).__name__ == "PlainAOTOutput" else None
            if not isinstance(value, self._torch.Tensor):
                self._note(f"The gradients of what {node.name} belongs to were not compared with autograd's.")
                continue
            generator = self._torch.Generator().manual_seed(number)
            made = self._torch.randn(value.shape, generator=generator, dtype=self._torch.float64, device="cpu")
            self.tangents[node.name] = made.to(value.device)

    def _given(self, one: _Run) -> list[tuple[Any, Any]]:
        """The results of the dynamo graph that have a tangent, with it."""
        nodes = [node for node in self.after.graph.nodes if node.name in self.tangents]
        pairs = [(one.outputs[node.meta["desc"].output.idx], self.tangents[node.name]) for node in nodes]
        return [(value, tangent) for value, tangent in pairs if value.requires_grad]

    def _gradients(self, one: _Run, other: _Run, noisy: _Run | None = None) -> float:
        """The largest difference of gradients from autograd's own."""
        given = self._given(one)
        if not given or not one.leaves:
            return 0.0
        values, tangents = zip(*given, strict=True)
        own = self._torch.autograd.grad(
            values, list(one.leaves.values()), tangents, retain_graph=True, allow_unused=True
        )
        by_name, found = dict(zip(one.leaves, own, strict=True)), [0.0]
        for (desc, _), value, shaken in zip(self._out, other.outputs, (noisy or other).outputs, strict=True):
            grad_of: Any = getattr(desc, "grad_of", None)
            is_plain = type(grad_of).__name__ == "PlainAOTInput"
            name = self.before.placeholders[grad_of.idx] if is_plain else getattr(grad_of, "target", "")
            if name in by_name and isinstance(value, self._torch.Tensor):
                grad = by_name[name]
                found.append(_apart(grad if grad is not None else self._torch.zeros_like(value), value, shaken))
        return max(found)

    def _backward_blame(self, one: _Run, other: _Run, ratio: float) -> Blame:
        """The last node of the dynamo graph whose own gradients are nowhere among the nodes of its backward."""
        if not self._tells("from_node", "seq_nr", "partitioner_tag"):
            return Blame(DYNAMO_GRAPH.name, STEP.format("backward"), "", ratio, self.before, self.after)
        made = self._made_for(other)
        values, tangents = zip(*self._given(one), strict=True)
        runner = Values(self.before, wide=True)
        for node in reversed(one.live):
            value = one.live[node]
            if not isinstance(value, self._torch.Tensor) or value.grad_fn is None or not made.get(node.name):
                continue
            (above,) = self._torch.autograd.grad(values, [value], tangents, retain_graph=True, allow_unused=True)
            if above is None:
                continue
            floor = 1e-9 * float(above.square().mean().sqrt())
            if any(
                not _is_among(each, made[node.name], floor) for each in self._own_gradients(runner, node, one, above)
            ):
                return Blame(DYNAMO_GRAPH.name, STEP.format("backward"), node.name, ratio, self.before, self.after)
        return Blame(DYNAMO_GRAPH.name, STEP.format("backward"), "", ratio, self.before, self.after)

    def _made_for(self, other: _Run) -> dict[str, list[Any]]:
        """What is computed in the backward of each node of the dynamo graph and goes on from there, by its name."""
        numbers: dict[str, set[Any]] = {}  # autograd's numbers of what a node became; what has no gradient shares them
        for node in other.values:
            for name in _sources(node) if not _is_backward(node) else ():
                numbers.setdefault(name, set()).add(node.meta.get("seq_nr"))
        by_number: dict[Any, list[Any]] = {}
        for node, value in other.values.items():
            own = node.meta.get("seq_nr")
            leads_on = any(user.meta.get("seq_nr") != own for user in node.users)  # else it is on the way to a gradient
            if _is_backward(node) and leads_on and isinstance(value, self._torch.Tensor):
                by_number.setdefault(own, []).append(value)
        return {name: [each for number in own for each in by_number.get(number, ())] for name, own in numbers.items()}

    def _own_gradients(self, runner: Values, node: Any, one: _Run, above: Any) -> list[Any]:
        """Autograd's gradients of the inputs of a node alone; none of one that draws or writes to its inputs."""
        leaves: dict[Any, Any] = {}
        for used in node.all_input_nodes:
            value = one.values[used]
            wanted = one.live.get(used, one.leaves.get(used.name))
            is_wanted = isinstance(wanted, self._torch.Tensor) and wanted.requires_grad
            leaves[used] = value.detach().clone().requires_grad_() if is_wanted else value
        inputs = [each for each in leaves.values() if isinstance(each, self._torch.Tensor) and each.requires_grad]
        with contextlib.suppress(NodeFailed, RuntimeError), self._alike(True), same_draws(Draws()) as draws:
            result = runner.node(node, leaves)
            if not draws.shapes and inputs:
                found = self._torch.autograd.grad([result], inputs, [above], allow_unused=True)
                return [each for each in found if each is not None]
        return []

    # --- running ------------------------------------------------------------------------------------------------------

    def _run_dynamo(self, draws: Draws, with_gradients: bool) -> _Run:
        given, wanted = self.dynamo_inputs(), set[str]()
        if with_gradients:
            for desc, node in self._out:
                grad_of: Any = getattr(desc, "grad_of", None)
                if type(grad_of).__name__ == "PlainAOTInput" and node is not None:
                    wanted.add(self.before.placeholders[grad_of.idx])
                elif grad_of is not None and node is not None and hasattr(grad_of, "target"):
                    wanted.add(grad_of.target)
        try:
            return self._run(self.before, given, draws, wanted)
        except RuntimeError as error:
            if not wanted:
                raise
            self._note(
                f"Autograd could not differentiate the dynamo graph, so gradients were not compared: {error}"[:300]
            )
            return self._run(self.before, given, Draws(draws.in_place_below), set())

    def _run_after(self, draws: Draws, noise: float = 0.0) -> _Run:
        return self._run(self.after, {**self.inputs(), **self.tangents}, draws, set(), noise)

    def _run(
        self, kept: KeptGraph, given: Mapping[str, Any], draws: Draws, wanted: set[str], noise: float = 0.0
    ) -> _Run:
        """Runs a graph in float64; what depends on an input or a node that cannot be run so is `MISSING`."""
        torch, run, env = self._torch, _Run(), dict[Any, Any]()
        runner = Values(kept, wide=True, noise=noise)
        with self._alike(bool(wanted)), same_draws(draws):
            for node in kept.graph.nodes:
                if node.op == "output":
                    outputs = node.args[0] if isinstance(node.args[0], list | tuple) else [node.args[0]]
                    run.outputs = [env.get(each, MISSING) if hasattr(each, "op") else each for each in outputs]
                    break
                env[node] = value = self._value(runner, node, env, given, wanted, run)
                if wanted and isinstance(value, torch.Tensor) and value.requires_grad:
                    run.live[node] = value
                run.values[node] = _snapshot(value)
        run.inputs = {node.name: env[node] for node in kept.graph.nodes if node.op == "placeholder"}
        run.drawn = draws.shapes
        return run

    def _value(
        self, runner: Values, node: Any, env: Mapping[Any, Any], given: Mapping[str, Any], wanted: set[str], run: _Run
    ) -> Any:
        name = str(node.target) if node.op == "get_attr" else node.name
        if node.op == "placeholder" or name in given:
            return self._leaf(name, runner.widened(given.get(name, MISSING)), wanted, run)
        if any(env[used] is MISSING for used in node.all_input_nodes):
            return MISSING
        try:
            value = runner.node(node, env)
        except NodeFailed as failure:
            run.failed.append(f"it could not run {failure}")
            return MISSING
        if node.name in runner.narrow and (runner.is_disturbed or node.graph is self.before.graph):
            return MISSING  # the last bit of its input may decide over much more
        return value

    def _leaf(self, name: str, value: Any, wanted: set[str], run: _Run) -> Any:
        """A given value, as a leaf of autograd where its gradient is wanted."""
        if name in wanted and isinstance(value, self._torch.Tensor) and value.is_floating_point():
            value = run.leaves[name] = value.detach().clone().requires_grad_()
        return value

    @contextlib.contextmanager
    def _alike(self, with_gradients: bool) -> Iterator[None]:
        """Numbers that an operation makes without a dtype are in float64, too; what the graph sets is set back."""
        torch = self._torch
        before = torch.get_default_dtype()
        try:
            torch.set_default_dtype(torch.float64)
            with torch.enable_grad() if with_gradients else torch.no_grad():
                yield
        finally:
            torch.set_default_dtype(before)


def step_between(versions: Sequence[Version], inputs: Callable[[], Mapping[str, Any]]) -> StepCheck | None:
    """The check of the step among the versions of a compile's graphs; None if one of the two was not seen.

    Raises CannotCompare.
    """
    before = next((each for each in reversed(versions) if each.stage == PRE_GRAD_GRAPH.name), None)
    after = next((each for each in versions if each.stage == JOINT_GRAPH.name and not each.name), None)
    return StepCheck(before.kept, after.kept, inputs) if before is not None and after is not None else None


def region_of_step(blame: Blame, given: Mapping[str, Any]) -> Region | None:
    """The node to blame by itself, on what it gets in eager mode; None if there is none to run by itself."""
    torch: Any = sys.modules["torch"]
    node = next((each for each in blame.before.graph.nodes if each.name == blame.node), None)
    if node is None or node.op not in ("call_function", "call_method") or str(node.target).endswith("_"):
        return None
    env: dict[Any, Any] = {}
    runner = Values(blame.before)
    for each in blame.before.graph.nodes:
        if each is node:
            break
        name = str(each.target) if each.op == "get_attr" else each.name
        env[each] = given[name] if name in given else None if each.op == "placeholder" else runner.node(each, env)
    if any(not isinstance(env[used], torch.Tensor) for used in node.all_input_nodes):
        return None
    copies = dict(zip(node.all_input_nodes, clones([env[used].detach() for used in node.all_input_nodes]), strict=True))
    return region_of([node], copies.__getitem__, [node.name])


def _output(kept: KeptGraph) -> Any:
    return next(node for node in kept.graph.nodes if node.op == "output")


def _apart(one: Any, other: Any, noisy: Any = None) -> float:
    """The difference as a multiple of what rewriting may change; 0 if the two cannot be compared."""
    if any(each is MISSING for each in (one, other, noisy)) or _shape(one) is None or _shape(one) != _shape(other):
        return 0.0
    floor = noise_floor(other, noisy) if noisy is not None and noisy is not other else 0.0
    return same_in_float64(one.detach(), other.detach(), floor)


def _is_among(wanted: Any, values: Sequence[Any], floor: float) -> bool:
    """Whether a gradient is one of some values, in any layout (of a matrix product it comes transposed)."""
    for value in values:
        if value.numel() == wanted.numel():
            forms = [value, value.mT] if value.dim() >= 2 else [value]
            if any(same_in_float64(wanted.flatten(), form.flatten(), floor) <= 1 for form in forms):
                return True
    return False


def _snapshot(value: Any) -> Any:
    return value.detach().clone() if hasattr(value, "detach") else value


def _shape(value: Any) -> tuple[int, ...] | None:
    return tuple(value.shape) if hasattr(value, "detach") else None


def _is_backward(node: Any) -> bool:
    return bool(node.meta.get("partitioner_tag") == "is_backward")


def _sources(node: Any) -> set[str]:
    """The nodes of the graph before from which a node was made, by name."""
    found, open_ = set[str](), list(node.meta.get("from_node") or ())
    while open_:
        source = open_.pop()
        found.add(str(source.name))
        open_ += list(getattr(source, "from_node", None) or ())
    return found
