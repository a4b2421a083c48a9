"""A value of a list that is looked up by the number of a tensor: the list becomes a tensor, and the graph looks it up."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator

from irscope.events.break_message import DATA_DEPENDENT_GUARD
from irscope.fixing.conditions import tensor_of
from irscope.fixing.model import OF_VALUES, Example, Proposal, Rule
from irscope.fixing.source import Source
from irscope.protocol import Finding

_TITLE = "Look it up inside of the graph"
_CAVEAT = "What is looked up is then a tensor."


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    torch = source.torch
    for entry in source.on_line(finding.range.start.line, ast.Subscript):
        values, index = _numbers(source, entry.value), tensor_of(source, entry.slice, "int")
        if values and index is not None:
            dtype = f", dtype={torch}.float64" if float in map(type, values) else ""  # one element does not widen
            table = f"{torch}.tensor({source.code(entry.value)}{dtype})"
            made = f"{table}.take({torch}.as_tensor({source.code(index)}).long())"
            yield Proposal(_TITLE, _CAVEAT, source.changed({entry: made}))


def _numbers(source: Source, node: ast.expr) -> list[object]:
    """The numbers of a list or tuple, as it is written in the place or at the top of the file."""
    node = source.constants.get(node.id, node) if isinstance(node, ast.Name) else node
    with contextlib.suppress(ValueError, TypeError):  # what is not a literal
        numbers = ast.literal_eval(node)
        if isinstance(numbers, (list, tuple)) and {*map(type, numbers)} <= {int, float}:
            return [*numbers]
    return []


_EXAMPLES = (
    Example(
        "return x * SCALES[int(x.sum())]",
        "return x * torch.tensor(SCALES, dtype=torch.float64).take(torch.as_tensor(x.sum()).long())",
        above="SCALES = [0.5, 1.0, 2.0, 4.0, 8.0]",
    ),
    Example(
        "return x + (1, 2, 3, 5, 8)[x.argmax().item()]",
        "return x + torch.tensor((1, 2, 3, 5, 8)).take(torch.as_tensor(x.argmax()).long())",
    ),
)
RULE = Rule("lookups", ("graph-break",), _propose, (*OF_VALUES, DATA_DEPENDENT_GUARD), examples=_EXAMPLES)
