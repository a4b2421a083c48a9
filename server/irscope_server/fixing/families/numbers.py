"""Numbers of arguments, modules and globals that change from call to call: as tensors, so that their values are not compiled in."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m
from irscope.protocol import Finding, RecompilationFacts, RelatedRole

from irscope_server.fixing.model import Family, Proposal
from irscope_server.fixing.source import Change, Source

_TITLE = "Keep the number in a tensor"
_CAVEAT = "Code that needs a Python number then breaks the graph."


def changed_number(finding: Finding) -> RecompilationFacts | None:
    """What is known about a number of a plain name that changed, ``n`` or ``self.step``; None if something else did."""
    facts = finding.facts
    if not isinstance(facts, RecompilationFacts) or not facts.number:
        return None
    return facts if all(part.isidentifier() for part in facts.source.split(".")) else None


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    yield from _argument(source, finding)
    number, torch = changed_number(finding), source.module_name("torch")
    if number is None or torch is None:
        return
    whole, is_int = number.source, number.number.lstrip("-").isdigit()
    name = whole.rpartition(".")[2]
    if whole.count(".") == 1 and whole.startswith("self."):
        target: m.Attribute | m.Name = m.Attribute(attr=m.Name(name))
    elif whole.isidentifier():
        target = m.Name(name)
    else:
        return
    function = next((one for one in source.on_line(finding.range.start.line, cst.FunctionDef)), None)
    changes: dict[cst.CSTNode, Change] = {}
    for one in m.findall(source.module, m.Assign(targets=[m.AssignTarget(target=target)])):
        assert isinstance(one, cst.Assign)
        if "." not in whole and source.function(one) is not None:
            return  # a local name of that name: which one is meant is not certain
        if function is not None and function in source.around(one):
            continue
        dtype = "" if is_int else f", dtype={torch}.float64"
        changes[one.value] = cst.parse_expression(f"{torch}.tensor({source.code(one.value)}{dtype})")
    if changes:
        yield Proposal(_TITLE, _CAVEAT, source.changed(changes))


def _argument(source: Source, finding: Finding) -> Iterator[Proposal]:
    """A number that a call passes, as a tensor: its value is then not compiled in."""
    number, torch = changed_number(finding), source.module_name("torch")
    place = next((one for one in finding.related if one.role is RelatedRole.TRIGGER), None)
    function = next((one for one in source.on_line(finding.range.start.line, cst.FunctionDef)), None)
    if number is None or torch is None or place is None or place.file != finding.file or function is None:
        return
    call, name = source.at(place.range), number.source
    if not isinstance(call, cst.Call) or any(arg.star for arg in call.args):
        return
    params = [one.name.value for one in (*function.params.posonly_params, *function.params.params)]
    params = params[1:] if params[:1] == ["self"] else params
    arg = next((one for one in call.args if one.keyword is not None and one.keyword.value == name), None)
    if arg is None and name in params and params.index(name) < len(call.args):
        arg = call.args[params.index(name)]
        arg = arg if arg.keyword is None else None
    if arg is None:
        return
    dtype = "" if number.number.lstrip("-").isdigit() else f", dtype={torch}.float64"
    made = cst.parse_expression(f"{torch}.tensor({source.code(arg.value)}{dtype})")
    yield Proposal("Pass the number as a tensor", _CAVEAT, source.changed({arg.value: made}))


FAMILY = Family("numbers", ("recompilation",), _propose, ("recompile-value",))
