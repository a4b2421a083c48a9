"""How often each class occurs, for a number of classes that the code names: the shape does not depend on values."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from irscope.fixing.model import Example, Proposal, Rule
from irscope.fixing.source import Source, tight
from irscope.protocol import Finding

_TITLE = "Count with `scatter_add` into a tensor of `minlength` elements"
_CAVEAT = "A number from `minlength` on is then an error, where `bincount` makes its result longer."


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    torch = source.module_name("torch")
    for call in source.on_line(finding.range.start.line, ast.Call):
        given = _arguments(source, call)
        if torch is None or given.keys() != {"input", "minlength"}:
            continue  # with weights, the type of the result depends on whether there are elements
        values = given["input"]
        zeros = f"{torch}.zeros({given['minlength']}, dtype={torch}.long, device={tight(values)}.device)"
        text = f"{zeros}.scatter_add(0, {tight(values)}.long(), {torch}.ones_like({values}, dtype={torch}.long))"
        yield Proposal(_TITLE, _CAVEAT, source.changed({call: text}))


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


RULE = Rule(
    "counts",
    ("graph-break",),
    _propose,
    ("GB0036",),
    examples=(
        Example(
            "return torch.bincount(x, minlength=8)",
            "return torch.zeros(8, dtype=torch.long, device=x.device)"
            ".scatter_add(0, x.long(), torch.ones_like(x, dtype=torch.long))",
            "f(torch.tensor([1, 2, 2]))",
        ),
        Example(
            "return (x + 1).bincount(minlength=8)",
            "return torch.zeros(8, dtype=torch.long, device=(x + 1).device)"
            ".scatter_add(0, (x + 1).long(), torch.ones_like((x + 1), dtype=torch.long))",
            "f(torch.tensor([1, 2, 2]))",
        ),
    ),
)
