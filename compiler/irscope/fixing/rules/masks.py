"""Operations whose shapes depend on values, in forms of a fixed shape: what a boolean mask selects is computed with the mask,
and how often each class occurs is counted for the number of classes that the code names."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from irscope.fixing.model import Example, Proposal, Rule
from irscope.fixing.source import Source, tight
from irscope.protocol import Finding

_MASK = "Compute with the mask instead of selecting", "Elements that the mask leaves out are computed, too."
_COUNT = (
    "Count with `scatter_add` into a tensor of `minlength` elements",
    "A number from `minlength` on is then an error, where `bincount` makes its result longer.",
)


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    torch = source.torch
    for call in source.on_line(finding.range.start.line, ast.Call):
        for words, text in ((_COUNT, _counted(source, call, torch)), (_MASK, masked(source, call, torch))):
            if text is not None:
                yield Proposal(*words, source.changed({call: text}))


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


def _counted(source: Source, call: ast.Call, torch: str) -> str | None:
    """``torch.bincount(x, minlength=n)`` with one addition for each element; None for other calls."""
    given = _arguments(source, call)
    if given.keys() != {"input", "minlength"}:
        return None  # with weights, the type of the result depends on whether there are elements
    values, dtype = given["input"], f"dtype={torch}.long"
    zeros = f"{torch}.zeros({given['minlength']}, {dtype}, device={tight(values)}.device)"
    return f"{zeros}.scatter_add(0, {tight(values)}.long(), {torch}.ones_like({values}, {dtype}))"


def _arguments(source: Source, call: ast.Call) -> dict[str, str]:
    """The arguments of ``torch.bincount(x, …)`` or ``x.bincount(…)`` by name; empty for other calls."""
    values = [source.code(argument) for argument in call.args]
    if source.full_name(call.func) != "torch.bincount":
        if not isinstance(call.func, ast.Attribute) or call.func.attr != "bincount":
            return {}
        values.insert(0, tight(source.code(call.func.value)))
    if any(isinstance(argument, ast.Starred) for argument in call.args):
        return {}
    given = dict(zip(("input", "weights", "minlength"), values, strict=False))
    return given | {keyword.arg or "**": source.code(keyword.value) for keyword in call.keywords}


_ADDED = (
    "return torch.zeros(8, dtype=torch.long, device={0}.device)"
    ".scatter_add(0, {0}.long(), torch.ones_like({0}, dtype=torch.long))"
)
_CALLS = "f(torch.tensor([1, 2, 2]))"
_EXAMPLES = (
    Example("return torch.bincount(x, minlength=8)", _ADDED.format("x"), _CALLS),
    Example("return (x + 1).bincount(minlength=8)", _ADDED.format("(x + 1)"), _CALLS),
    Example("return x[x > 0].sum()", "return torch.where(x > 0, x, 0).sum()"),
    Example("return torch.masked_select(x, x > 0).mean()", "return torch.where(x > 0, x, 0).sum() / (x > 0).sum()"),
)
RULE = Rule("masks", ("graph-break",), _propose, ("GB0036",), examples=_EXAMPLES)
