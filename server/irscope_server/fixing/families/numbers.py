"""Numbers of modules and globals that change from call to call: as tensors, so that their values are not compiled in."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m
from irscope.protocol import Finding

from irscope_server.fixing.model import Family, Proposal
from irscope_server.fixing.source import Change, Source

_CHANGED = re.compile(r"`(?P<source>[\w.]+)` was (?P<was>-?\d[\d.e+-]*) when")
"""What `irscope.findings.kinds.recompilation` says of a number."""
_TITLE = "Keep the number in a tensor"
_CAVEAT = "Code that needs a Python number then breaks the graph."


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    match, torch = _CHANGED.search(finding.message), source.module_name("torch")
    if match is None or torch is None:
        return
    whole, is_int = match["source"], match["was"].lstrip("-").isdigit()
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


FAMILY = Family("numbers", ("recompilation",), _propose, ("recompile-value",))
