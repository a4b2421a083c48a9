"""A value of a list that is looked up by the number of a tensor: the list becomes a tensor, and the graph looks it up."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m
from irscope.protocol import Finding

from irscope_server.fixing.model import Family, Proposal
from irscope_server.fixing.source import Source

_TITLE = "Look it up inside of the graph"
_CAVEAT = "What is looked up is then a tensor."
_NUMBER = m.Call(func=m.Name("int"), args=[m.Arg(keyword=None)]) | m.Call(
    func=m.Attribute(attr=m.Name("item")), args=[]
)


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    torch = source.module_name("torch")
    if torch is None:
        return
    for one in source.on_line(finding.range.start.line, cst.Subscript):
        values, index = _values(source, one.value), _index(one)
        if values is not None and index is not None:
            dtype = f", dtype={torch}.float64" if _has_float(values) else ""  # a tensor of one element does not widen
            made = (
                f"{torch}.tensor({source.code(one.value)}{dtype}).take({torch}.as_tensor({source.code(index)}).long())"
            )
            yield Proposal(_TITLE, _CAVEAT, source.changed({one: cst.parse_expression(made)}))


def _values(source: Source, node: cst.BaseExpression) -> cst.List | cst.Tuple | None:
    """A list or tuple of numbers, as it is written in the place or at the top of the file."""
    if isinstance(node, cst.Name) and node.value in source.constants:
        found = m.findall(source.module, m.Assign(targets=[m.AssignTarget(target=m.Name(node.value))]))
        node = cst.ensure_type(found[0], cst.Assign).value if len(found) == 1 else node
    if not isinstance(node, (cst.List, cst.Tuple)) or not node.elements:
        return None
    return node if all(_is_number(one.value) for one in node.elements) else None


def _is_number(node: cst.BaseExpression) -> bool:
    inner = node.expression if m.matches(node, m.UnaryOperation(operator=m.Minus())) else node  # type: ignore[attr-defined]
    return isinstance(inner, (cst.Integer, cst.Float))


def _has_float(values: cst.List | cst.Tuple) -> bool:
    return bool(m.findall(values, m.Float()))


def _index(node: cst.Subscript) -> cst.BaseExpression | None:
    """The tensor whose number is the index."""
    (element, *more) = node.slice
    if more or not isinstance(element.slice, cst.Index) or not m.matches(element.slice.value, _NUMBER):
        return None
    call = cst.ensure_type(element.slice.value, cst.Call)
    return call.args[0].value if call.args else cst.ensure_type(call.func, cst.Attribute).value


FAMILY = Family("lookups", ("graph-break",), _propose, ("GB0124", "GB0033", "GB0170", "data-dependent-guard"))
