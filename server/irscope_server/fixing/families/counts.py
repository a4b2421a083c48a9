"""How often each class occurs, for a number of classes that the code names: the shape does not depend on values."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m
from irscope.protocol import Finding

from irscope_server.fixing.conditions import tight
from irscope_server.fixing.model import Family, Proposal
from irscope_server.fixing.source import Source

_TITLE = "Count with `scatter_add` into a tensor of `minlength` elements"
_CAVEAT = "A number from `minlength` on is then an error, where `bincount` makes its result longer."


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    torch = source.module_name("torch")
    for call in source.on_line(finding.range.start.line, cst.Call):
        given = _arguments(source, call)
        if torch is None or given is None or given.keys() != {"input", "minlength"}:
            continue  # with weights, the type of the result depends on whether there are elements
        values = given["input"]
        zeros = f"{torch}.zeros({given['minlength']}, dtype={torch}.long, device={tight(values)}.device)"
        text = f"{zeros}.scatter_add(0, {tight(values)}.long(), {torch}.ones_like({values}, dtype={torch}.long))"
        yield Proposal(_TITLE, _CAVEAT, source.changed({call: cst.parse_expression(text)}))


def _arguments(source: Source, call: cst.Call) -> dict[str, str] | None:
    """The arguments of ``torch.bincount(x, …)`` or ``x.bincount(…)`` by name; None for other calls."""
    names = ["input", "weights", "minlength"]
    given: dict[str, str] = {}
    if source.full_name(call.func) != "torch.bincount":
        if not m.matches(call.func, m.Attribute(attr=m.Name("bincount"))):
            return None
        given["input"] = source.code(cst.ensure_type(call.func, cst.Attribute).value)
        names = names[1:]
    for arg in call.args:
        name = arg.keyword.value if arg.keyword is not None else next((one for one in names if one not in given), "")
        if arg.star or not name:
            return None
        given[name] = source.code(arg.value)
    return given if "input" in given else None


FAMILY = Family("counts", ("graph-break",), _propose, ("GB0036",))
