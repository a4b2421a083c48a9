"""Which pass made a graph compute something else: each version of the graph is run in float64 on the same inputs.

In float64 rewriting an expression moves its result by some 1e-15, so a pass that changes what is computed stands out,
whatever the dtype of the model.  A pass that changes only roundings (drops a cast) does not show here.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from irscope.pipelines.inductor.stages import JOINT_GRAPH, POST_GRAD_GRAPH
from irscope.values.check.comparing import MISSING
from irscope.values.check.measuring import NOISE, noise_floor, same_in_float64
from irscope.values.run.interpreting import KeptGraph, NodeFailed, Values, draws, mutates
from irscope.values.run.running import CallMoment
from irscope.values.run.shared_random import Draws, same_draws
from irscope.values.run.subgraph_compile import Drawing
from irscope.vocabulary.records import dataclass

_DRAWS_ANEW = ("replace_random_passes",)
"""Passes that replace how random numbers are drawn, so that the numbers change."""


@dataclass
class Version:
    """A graph before the passes of a stage (``name`` is empty), or after one that changed it."""

    stage: str
    name: str
    kept: KeptGraph
    touched: frozenset[str] = frozenset()
    """Nodes that the pass added or changed."""


@dataclass
class Blame:
    """A pass after which a graph computes something else.

    Args:
        node: The first node of the graph after it that the pass touched and that gives another value, or that changed
            an output.
        ratio: The difference as a multiple of what rewriting may change.
        before: The graph before it, whose compiled form can be compared with it.
    """

    stage: str
    name: str
    node: str
    ratio: float
    before: KeptGraph
    after: KeptGraph


@dataclass(frozen=True)
class PassCheck:
    """Runs versions of a graph at one call.

    Args:
        inputs: Gives fresh copies of the inputs of the graphs, by name; those that are missing leave what depends on
            them out.
        values: What compiled code drew, by node.
        moment: The moment whose generators draw the other random numbers, from the same state for each version.
    """

    inputs: Callable[[], Mapping[str, Any]]
    values: Mapping[str, Any]
    drawing: Drawing
    moment: CallMoment

    def blame(self, versions: Sequence[Version]) -> tuple[list[Blame], list[str]]:
        """The passes that changed what is computed, and sentences on versions that could not be run."""
        found: list[Blame] = []
        notes: list[str] = []
        groups: dict[str, list[Version]] = {}
        for version in versions:
            groups.setdefault(version.stage, []).append(version)
        for stage, group in groups.items():
            try:
                if len(group) > 1:
                    found += self._in_stage(stage, group)
            except Exception as error:  # noqa: BLE001  another version of the graph may not run by itself
                notes.append(f"The passes of the {stage} were not checked: {type(error).__name__}: {str(error)[:200]}")
        try:
            found += self._between(groups.get(JOINT_GRAPH.name, ()), groups.get(POST_GRAD_GRAPH.name, ()))
        except Exception as error:  # noqa: BLE001
            notes.append(f"The step to the post-grad graph was not checked: {type(error).__name__}: {str(error)[:200]}")
        return found, notes

    def _between(self, joint: Sequence[Version], post: Sequence[Version]) -> list[Blame]:
        """The step from the joint graph after its passes (an inference graph likewise) to what the next passes get."""
        if not joint or not post:
            return []
        one, other = joint[-1].kept, post[0].kept
        first, second = _results(one, self._outputs(one)), _results(other, self._outputs(other))
        known = [number for number in first if number in second]
        off = _apart([first[number] for number in known], [second[number] for number in known])
        if off > 1:
            noisy = _results(other, self._outputs(other, NOISE))
            off = _apart(*([each[number] for number in known] for each in (first, second, noisy)))
        if off <= 1:
            return []
        name = (
            "joint graph → forward graph"
            if one.placeholders != other.placeholders
            else "inference graph → post-grad graph"
        )
        return [Blame(POST_GRAD_GRAPH.name, name, "", off, one, other)]

    def _in_stage(self, stage: str, group: Sequence[Version]) -> list[Blame]:
        redraws = any(version.name.startswith(_DRAWS_ANEW) for version in group)
        random = any(draws(node) for node in group[0].kept.graph.nodes)
        written = any(version.kept.writes_in_place for version in group)
        outputs = functools.partial(self._outputs, with_inputs=written)
        if not (redraws and random):  # most graphs: the first and the last agree, and so do all between
            first, last = (outputs(version.kept) for version in (group[0], group[-1]))
            if _apart(first, last) <= 1 or _apart(first, last, outputs(group[-1].kept, NOISE)) <= 1:
                return []
        found = []
        before = outputs(group[0].kept)
        for earlier, later in itertools.pairwise(group):
            after = outputs(later.kept)
            ratio = 0.0 if later.name.startswith(_DRAWS_ANEW) else _apart(before, after)
            if ratio > 1 and (ratio := _apart(before, after, outputs(later.kept, NOISE))) > 1:
                node = self._first_changed(earlier.kept, later)
                found.append(Blame(stage, later.name, node, ratio, earlier.kept, later.kept))
            before = after
        return found

    def _outputs(self, kept: KeptGraph, noise: float = 0.0, with_inputs: bool = False) -> list[Any]:
        """The results of a graph; ``with_inputs``: also what its inputs hold then."""
        env = self.run(kept, noise)
        output = next(node for node in kept.graph.nodes if node.op == "output")
        found = list(output.args[0]) if isinstance(output.args[0], (list, tuple)) else [output.args[0]]
        found += [node for node in kept.graph.nodes if with_inputs and node.op == "placeholder"]
        return [env.get(node, MISSING) if hasattr(node, "op") else node for node in found]

    def run(self, kept: KeptGraph, noise: float = 0.0) -> dict[Any, Any]:
        """All values of a graph in float64; what depends on an input that is not there is `MISSING`.

        Disturbed, what depends on an operation without a float64 form is, too: the last bit of its input may decide over
        much more than rewriting changes.
        """
        given = {
            node.name: self.values[node.name] for node in kept.graph.nodes if node.name in self.values and draws(node)
        }
        inputs = self.inputs()
        self.moment.rewind()
        env: dict[Any, Any] = {}
        runner = Values(kept, given, self.drawing, wide=True, noise=noise)
        with contextlib.nullcontext() if given or _is_lowered(kept) else same_draws(Draws()):
            for node in kept.graph.nodes:
                if node.op == "output":
                    break
                if node.op == "placeholder":
                    value = inputs.get(node.name, MISSING)
                    env[node] = runner.widened(value) if value is not MISSING else MISSING
                elif any(env[used] is MISSING for used in node.all_input_nodes):
                    env[node] = MISSING
                else:
                    try:
                        env[node] = runner.node(node, env)
                    except NodeFailed:
                        env[node] = MISSING
                    if noise and node.name in runner.narrow:
                        env[node] = MISSING
        return env

    def _first_changed(self, before: KeptGraph, later: Version) -> str:
        """The first node that the pass touched and that has, or makes, another value."""
        one = {node.name: value for node, value in self.run(before).items()}
        other = self.run(later.kept)
        apart = [
            node
            for node, value in other.items()
            if value is not MISSING and one.get(node.name, MISSING) is not MISSING
            and same_in_float64(one[node.name], value) > 1
        ]  # fmt: skip
        touched = [node.name for node in other if node.name in later.touched]
        if apart:  # a new node has no counterpart; of those, the first that feeds what is first seen to differ
            above = _above(apart[0]) | {user.name for user in apart[0].users if mutates(user)}
            touched = [name for name in touched if name in above] or [str(apart[0].name)]
        return str(touched[0]) if touched else ""


def _is_lowered(kept: KeptGraph) -> bool:
    """Whether it is a graph of AOTAutograd's; the dynamo graph calls functions of the user's level, which draw unseen."""
    return any("val" in node.meta for node in kept.graph.nodes)


TOKENS = frozenset(f"{where}TokenAOT{what}" for where in ("Forward", "Backward") for what in ("Input", "Output"))
"""Descriptions of what orders the effects of operators: of these inputs and outputs graphs keep only the description."""


def descriptions(output: Any) -> list[Any]:
    """How AOTAutograd describes the outputs of a graph, in order; empty if it does not."""
    described = output.meta.get("desc")
    return (
        [desc for desc in described if type(desc).__name__ not in TOKENS] if isinstance(described, list | tuple) else []
    )


def _results(kept: KeptGraph, values: Sequence[Any]) -> dict[int, Any]:
    """The results of the script's function among the outputs of a graph, by their numbers.

    Raises LookupError if AOTAutograd does not describe them (``meta["desc"]``, checked on torch 2.11 and 2.13).
    """
    described = descriptions(next(node for node in kept.graph.nodes if node.op == "output"))
    if len(described) != len(values):
        raise LookupError("its outputs are not described: the output has no 'desc' (checked on torch 2.11 and 2.13)")
    pairs = zip(described, values, strict=True)
    return {desc.idx: value for desc, value in pairs if type(desc).__name__ == "PlainAOTOutput"}


def _apart(before: Sequence[Any], after: Sequence[Any], noisy: Sequence[Any] = ()) -> float:
    """How far results are apart; ``noisy``: those after, disturbed."""
    if len(before) != len(after):
        return 0.0  # another set of outputs: not to be compared one by one
    found = [0.0]
    for one, other, disturbed in zip(before, after, noisy or [None] * len(after), strict=True):
        if not any(each is MISSING for each in (one, other, disturbed)):
            found.append(same_in_float64(one, other, noise_floor(other, disturbed)))
    return max(found)


def _above(node: Any) -> set[str]:
    found, open_ = {node.name}, [node]
    while open_:
        for used in open_.pop().all_input_nodes:
            if used.name not in found:
                found.add(used.name)
                open_.append(used)
    return found
