"""A function that is compiled with and without gradients: compiled once, with them, and its result is detached."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m
from irscope.protocol import GRAD_MODE, Finding, RecompilationFacts

from irscope_server.fixing.model import Family, Proposal
from irscope_server.fixing.source import Source, statements
from irscope_server.fixing.splitting import can_be_split, is_method, split

_TITLE = "Run one graph with gradients, and detach its result where they are off"
_CAVEAT = (
    "Calls without gradients then keep what a backward would need while they run: more memory, and maybe slower. "
    "It is for where a second compile costs more."
)
_NO_TENSOR = m.Tuple() | m.List() | m.Dict() | m.Name("None") | m.Lambda() | m.ListComp() | m.DictComp()


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    torch = source.module_name("torch")
    function = next(iter(source.on_line(finding.range.start.line, cst.FunctionDef)), None)
    is_of_mode = isinstance(finding.facts, RecompilationFacts) and finding.facts.state == GRAD_MODE
    if torch is None or function is None or not is_of_mode or not can_be_split(source, function):
        return
    returned = [cst.ensure_type(one, cst.Return).value for one in m.findall(function.body, m.Return())]
    if not returned or any(one is None or m.matches(one, _NO_TENSOR) for one in returned):
        return
    names = [one.name.value for one in (*function.params.posonly_params, *function.params.params)]
    result = source.fresh("result")
    inner = source.fresh(f"{function.name.value.strip('_')}_with_gradients")
    call = (
        f"{names[0]}.{inner}({', '.join(names[1:])})" if is_method(source, function) else f"{inner}({', '.join(names)})"
    )
    outer = cst.IndentedBlock(
        statements(
            f"with {torch}.enable_grad():\n    {result} = {call}\n"
            f"return {result} if {torch}.is_grad_enabled() else {result}.detach()"
        )
    )
    renamed = function.with_changes(name=cst.Name(inner))
    first = "outer" if is_method(source, function) else "inner"
    yield Proposal(_TITLE, _CAVEAT, split(source, function, outer, renamed, torch, first), last=True)


FAMILY = Family("gradient modes", ("recompilation",), _propose, ("recompile-global-state",))
