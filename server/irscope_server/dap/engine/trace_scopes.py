"""The scopes of a frame in a symbolic trace: what Dynamo knew before the instruction, and what the instruction brings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from irscope.values.facts import Facts, Lazy

from irscope_server.dap.base.finding_facts import outcome_facts
from irscope_server.dap.base.sections import Section
from irscope_server.dap.engine.names import node_facts
from irscope_server.dap.trace.facts import locals_facts, step_facts, variable_facts
from irscope_server.dap.trace.traces import TraceSection

_TITLES = {"graph-break": "Graph break", "restart": "Restart", "exception": "Exception", "error": "Error"}
"""What the scope of an outcome is called."""


@dataclass(frozen=True)
class Scope:
    """One scope; ``path`` is the expression that gives its value."""

    name: str
    value: Any
    path: str | None = None
    hint: str = ""
    expensive: bool = False


def scopes_of_step(section: TraceSection, step: int, graph: Section | None) -> Iterator[Scope]:
    """The scopes of one frame, in the order of their use.  An empty one is left out.

    Args:
        graph: The first graph of the compile, for what is known about its nodes.
    """
    walk = section.walk
    assert walk is not None
    here = walk.step(step)
    if here.outcome is not None and here.outcome.kind in _TITLES:
        ended = outcome_facts(here.outcome, section.findings_at.get(step))
        yield Scope(_TITLES[here.outcome.kind], ended, "step.ended")
    yield Scope("Symbolic stack", _top_first(walk.frame(step).stack), "stack")
    if (known := locals_facts(section, step)).names():
        yield Scope("Locals", known, "locals", hint="locals")
    yield Scope("Nodes made by this step", _nodes(section, graph, here.nodes))
    yield Scope("Guards added by this step", list(here.guards), "step.guards")
    instruction = step_facts(section, step, lambda outcome: outcome_facts(outcome, section.findings_at.get(step)))
    yield Scope("Instruction", instruction, "step")
    yield Scope("Graph so far", _lists(lambda: _nodes(section, graph, walk.nodes(step)), "nodes"), None, expensive=True)
    yield Scope("Guards so far", _lists(lambda: list(walk.guards(step)), "guards"), None, expensive=True)


def _top_first(stack: Sequence[str]) -> Lazy:
    """The stack as people read it; the labels are the indices from its top, as the expression ``stack[-1]`` has them."""
    return Lazy(len(stack), lambda index: variable_facts(stack[-1 - index]), lambda index: str(-1 - index))


def _nodes(section: TraceSection, graph: Section | None, names: Sequence[str]) -> Lazy:
    known = graph.nodes if graph is not None and section.is_last else {}

    def node(index: int) -> Any:
        name = names[index]
        return node_facts(graph, name) if graph is not None and name in known else name

    return Lazy(len(names), node)


def _lists(read: Any, what: str) -> Facts:
    """A list that takes long to make: it is made when the user opens it."""
    return Facts(what, what, {what: read})
