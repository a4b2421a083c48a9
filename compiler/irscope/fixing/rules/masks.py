"""What a boolean mask selects, as arithmetic with the mask: the shape does not depend on values."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from irscope.fixing.model import Example, Proposal, Rule
from irscope.fixing.source import Source, tight
from irscope.protocol import Finding

_TITLE = "Compute with the mask instead of selecting"
_CAVEAT = "Elements that the mask leaves out are computed, too."


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    torch = source.module_name("torch")
    for call in source.on_line(finding.range.start.line, ast.Call):
        text = masked(source, call, torch) if torch is not None else None
        if text is not None:
            yield Proposal(_TITLE, _CAVEAT, source.changed({call: text}))


def masked(source: Source, call: ast.AST | None, torch: str) -> str | None:
    """The sum or mean of what a mask selects, computed with the mask; None for other calls."""
    if not isinstance(call, ast.Call) or call.args or call.keywords:
        return None
    method = call.func
    if not isinstance(method, ast.Attribute) or method.attr not in ("sum", "mean"):
        return None
    selected = _selected(source, method.value)
    if selected is None:
        return None
    value, mask = selected
    total = f"{torch}.where({mask}, {value}, 0).sum()"
    text = total if method.attr == "sum" else f"{total} / {tight(mask)}.sum()"
    is_part = not isinstance(source.parent(call), (ast.Return, ast.Assign, ast.Call, ast.keyword, ast.Expr))
    return tight(text) if is_part else text


def _selected(source: Source, node: ast.expr) -> tuple[str, str] | None:
    """``x[mask]`` and ``torch.masked_select(x, mask)``."""
    if isinstance(node, ast.Subscript) and not isinstance(node.slice, (ast.Slice, ast.Tuple)):
        return source.code(node.value), source.code(node.slice)
    if isinstance(node, ast.Call) and source.full_name(node.func) == "torch.masked_select":
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        return (source.code(given[0]), source.code(given[1])) if len(given) == 2 else None
    return None


RULE = Rule(
    "masks",
    ("graph-break",),
    _propose,
    ("GB0036",),
    examples=(
        Example("return x[x > 0].sum()", "return torch.where(x > 0, x, 0).sum()"),
        Example("return torch.masked_select(x, x > 0).mean()", "return torch.where(x > 0, x, 0).sum() / (x > 0).sum()"),
    ),
)
