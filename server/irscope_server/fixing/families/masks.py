"""What a boolean mask selects, as arithmetic with the mask: the shape does not depend on values."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m
from irscope.protocol import Finding

from irscope_server.fixing.conditions import tight
from irscope_server.fixing.model import Family, Proposal
from irscope_server.fixing.source import Source

_TITLE = "Compute with the mask instead of selecting"
_CAVEAT = "Elements that the mask leaves out are computed, too."


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    torch = source.module_name("torch")
    reduced = m.Call(func=m.Attribute(attr=m.Name("sum") | m.Name("mean")), args=[])
    for call in source.on_line(finding.range.start.line, cst.Call):
        if torch is None or not m.matches(call, reduced) or not isinstance(call.func, cst.Attribute):
            continue
        selected = _selected(source, call.func.value)
        if selected is None:
            continue
        value, mask = selected
        total = f"{torch}.where({mask}, {value}, 0).sum()"
        text = total if call.func.attr.value == "sum" else f"{total} / {tight(mask)}.sum()"
        if text != total and not isinstance(source.parent(call), (cst.Return, cst.Assign, cst.Arg, cst.Expr)):
            text = f"({text})"
        yield Proposal(_TITLE, _CAVEAT, source.changed({call: cst.parse_expression(text)}))


def _selected(source: Source, node: cst.BaseExpression) -> tuple[str, str] | None:
    """``x[mask]`` and ``torch.masked_select(x, mask)``."""
    if isinstance(node, cst.Subscript) and len(node.slice) == 1 and isinstance(node.slice[0].slice, cst.Index):
        return source.code(node.value), source.code(node.slice[0].slice.value)
    if isinstance(node, cst.Call) and source.full_name(node.func) == "torch.masked_select" and len(node.args) == 2:
        return source.code(node.args[0].value), source.code(node.args[1].value)
    return None


FAMILY = Family("masks", ("graph-break",), _propose, ("GB0036",))
