"""What is known about the nodes of a graph stage, of a version that a pass made too, from the graphs before it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from irscope.ir.graphs import short_target
from irscope.ir.nodes import NodeFacts, Source, facts_of
from irscope.pipelines.registry import stage_kind
from irscope.protocol import Compile, StageRef
from irscope.provenance import chain
from irscope.store.store import Store

Modules = Mapping[tuple[int, str], tuple[str, str]]
"""The module of a node by the number of its graph and its name."""
Calls = Mapping[tuple[int, str], str]
"""What a node calls, by the same."""


def graphs_in_order(compile: Compile, backward: bool) -> Iterator[StageRef]:
    """The graphs of one way down; the versions of one that passes were run over are around it as they came to be.

    The joint graph is printed before its passes, the pre-grad and the post-grad graph after them.
    """
    graphs = [
        stage
        for stage in compile.stages
        if stage_kind(stage.name).is_graph and (chain.is_shared(stage) or chain.is_backward(stage) == backward)
    ]
    ranks = _ranks(graphs)
    for name in sorted({stage.name for stage in graphs}, key=lambda name: ranks[name]):
        bases = [stage for stage in graphs if stage.name == name and not stage.passed]
        passes = [stage for stage in graphs if stage.name == name and stage.passed]
        yield from [*bases, *passes] if stage_kind(name).precedes_passes else [*passes, *bases]


def _ranks(graphs: Sequence[StageRef]) -> dict[str, float]:
    names = {stage.name for stage in graphs}
    bases = {stage.name for stage in graphs if not stage.passed}
    ranks: dict[str, float] = {name: chain.rank(StageRef(name, name, "", 0)) or 0 for name in names}
    for name in names:
        other = stage_kind(name).versions_as
        if other and other not in bases:
            # Without a backward the passes of the joint graph are run over the inference graph.
            ranks[other] = ranks[name] + 0.5
    return ranks


def base_of(stage: StageRef) -> StageRef:
    """The stage that a version belongs to: ``0/0/joint-graph`` of ``0/0/joint-graph/01-remove_noop_ops``."""
    return StageRef(stage.id.rpartition("/")[0], stage.name, stage.language, 0) if stage.passed else stage


def facts_along(store: Store, run: str, compile: Compile, stage: StageRef) -> dict[str, NodeFacts]:
    """What is known about the nodes of a graph, by name.

    A version that a pass made has only what is new in it; the rest is that of the graphs before it, and of the graph
    that it belongs to.  A node that a pass made belongs to the module of what it came from.
    """
    before: dict[str, NodeFacts] = {}
    modules: dict[tuple[int, str], tuple[tuple[str, str], ...]] = {}
    for one in graphs_in_order(compile, chain.is_backward(stage)):
        if one.id == stage.id:
            break
        number, facts = _facts(store, run, one.id, bool(one.passed))
        before.update(facts)
        modules.update({(number, name): fact.modules for name, fact in facts.items() if fact.modules})
    _, own = _facts(store, run, stage.id, bool(stage.passed))
    if stage.passed:
        own = {**_facts(store, run, base_of(stage).id, False)[1], **before, **own}
    for name, fact in own.items():
        if not fact.modules and (around := _module_of(fact.sources, modules)):
            own[name] = fact._replace(modules=around)
    return own


def calls_above(store: Store, run: str, compile: Compile, stage: StageRef) -> Calls:
    """What the nodes of the first graph call, where a stage comes after it: that graph is closest to the user's code.

    The others are not read: each node of the stage has its operator before decompositions by itself, and they may be large.
    """
    first = next(graphs_in_order(compile, chain.is_backward(stage)), stage)
    if first.id == stage.id:
        return {}
    try:
        data = store.stage_data(run, first.id) or {}
        nodes, targets, number = data["nodes"], data["targets"], data["graph"]
        return {
            (number, name): short_target(targets[at])
            for name, at, op in zip(nodes["name"], nodes["target"], nodes["op"], strict=True)
            if op.startswith("call_")
        }
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError):
        return {}  # none, or data of another version


_Module = TypeVar("_Module")
"""The innermost module, or that with those around it."""
MOST_ORIGINALS = 8
"""Operations that one was made from; a node that a pass made of a whole graph would have hundreds."""


def original_calls(sources: Iterable[Source], above: Calls) -> Iterator[str]:
    """What a node was in the first graph; each of its ancestors is asked once."""
    seen: set[tuple[int, str]] = set()
    stack = list(sources)[::-1]
    while stack:
        source = stack.pop()
        key = (source.graph, source.name)
        if key not in seen:
            seen.add(key)
            if key in above:
                yield above[key]
            else:
                stack += source.sources[::-1]


def modules_above(store: Store, run: str, compile: Compile, stage: StageRef) -> Modules:
    """The module of each node of the graphs before a stage that has one, by the number of the graph and its name."""
    found: dict[tuple[int, str], tuple[str, str]] = {}
    for one in graphs_in_order(compile, chain.is_backward(stage)):
        if one.id == stage.id:
            break
        try:
            data = store.stage_data(run, one.id) or {}
            data = data.get("new", {}) if one.passed else data
            nodes, modules, number = data["nodes"], [(path, kind) for path, kind in data["modules"]], data["graph"]
            found.update(
                {
                    (number, name): modules[at]
                    for name, at in zip(nodes["name"], nodes["module"], strict=True)
                    if at >= 0
                }
            )
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError):
            continue  # none, or data of another version
    return found


def _module_of(sources: tuple[Source, ...], modules: dict[tuple[int, str], _Module]) -> _Module | None:
    for source in sources:
        module = modules.get((source.graph, source.name)) or _module_of(source.sources, modules)
        if module is not None:
            return module
    return None


def _facts(store: Store, run: str, stage: str, version: bool) -> tuple[int, dict[str, NodeFacts]]:
    """The number of a stage's graph, and what is known about its nodes."""
    try:
        data = store.stage_data(run, stage)
        data = (data or {}).get("new") if version else data
        return int((data or {}).get("graph", -1)), {fact.name: fact for fact in facts_of(data)}
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError):
        return -1, {}  # none, or data of another version
