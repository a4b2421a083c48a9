"""What a step of a symbolic trace knows, as facts for expressions and variables: instruction, stack, locals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from irscope.symbolic.trace import Outcome
from irscope.symbolic.variables import variable_of
from irscope.values.facts import Facts, Lazy

from irscope_server.dap.base.dtypes import DTYPES
from irscope_server.dap.trace.traces import TraceSection

UNSEEN = "not looked at yet"


def variable_facts(text: str) -> Facts:
    """A symbolic variable, by what the trace says of it."""
    variable = variable_of(text)
    facts: dict[str, Any] = {}
    if variable.shape is not None:
        facts["dtype"] = f"torch.{DTYPES.get(variable.dtype, variable.dtype)}"
        facts["shape"] = [int(size) if size.isdecimal() else size for size in variable.shape]
        facts["device"] = variable.device or None
    elif variable.what:
        facts["value"] = variable.what
    if variable.node:
        facts["node"] = variable.node
    if variable.source:
        facts["source"] = variable.source
    kind = variable.kind or UNSEEN
    facts["kind"] = kind
    words = [variable.what, f"= {variable.node}" if variable.node else "", f"({kind})" if variable.what else kind]
    return Facts(kind, " ".join(word for word in words if word), facts)


def stack_facts(section: TraceSection, step: int) -> Lazy:
    """The symbolic stack before a step, its bottom first."""
    assert section.walk is not None
    stack = section.walk.frame(step).stack
    return Lazy(len(stack), lambda index: variable_facts(stack[index]))


def locals_facts(section: TraceSection, step: int) -> Facts:
    """The symbolic locals of the step's function before it."""
    known = locals_of(section, step)
    return Facts("locals", f"{len(known)} locals", {name: _later(text) for name, text in known.items()})


def locals_of(section: TraceSection, step: int) -> Mapping[str, str]:
    """The locals before a step, from name to text."""
    assert section.walk is not None
    return section.walk.frame(step).locals


def _later(text: str) -> Any:
    return lambda: variable_facts(text)


def step_facts(section: TraceSection, step: int, ended: Callable[[Outcome], Facts]) -> Facts:
    """The instruction of a step, where it is, and what it brings about.

    Args:
        ended: Describes the outcome of a step that has one.
    """
    walk = section.walk
    assert walk is not None
    here = walk.step(step)
    start = here.range.start if here.range is not None else None
    facts: dict[str, Any] = {
        "operation": here.operation,
        "argument": here.argument,
        "result": lambda: variable_facts(text) if (text := walk.top_after(step)) else "",
        "function": here.function,
        "file": here.file,
        "line": section.line(step),
        "column": start.column + 1 if start is not None else None,
        "offset": here.offset if here.offset >= 0 else None,
        "depth": here.depth,
        "index": step,
        "steps": len(walk),
        "attempt": section.attempt,
        "attempts": section.attempts,
        "nodes": list(here.nodes),
        "guards": list(here.guards),
        "outcome": here.outcome.kind if here.outcome is not None else "",
    }
    if (outcome := here.outcome) is not None:
        facts["ended"] = lambda: ended(outcome)
    return Facts("step", f"{here.operation} {here.argument}".rstrip(), facts)
