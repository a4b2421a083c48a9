"""A function that is compiled with and without gradients: compiled once, with them, and its result is detached."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from irscope.fixing.model import Proposal, Rule
from irscope.fixing.source import Source
from irscope.fixing.splitting import body_edit, can_be_split, is_method, parameters, renamed, split
from irscope.protocol import GRAD_MODE, Finding, RecompilationFacts

_TITLE = "Run one graph with gradients, and detach its result where they are off"
_CAVEAT = (
    "Calls without gradients then keep what a backward would need while they run: more memory, and maybe slower. "
    "It is for where a second compile costs more."
)
_NO_TENSOR = (ast.Tuple, ast.List, ast.Dict, ast.Lambda, ast.ListComp, ast.DictComp)


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    torch = source.module_name("torch")
    function = next(iter(source.on_line(finding.range.start.line, ast.FunctionDef)), None)
    is_of_mode = isinstance(finding.facts, RecompilationFacts) and finding.facts.state == GRAD_MODE
    if torch is None or function is None or not is_of_mode or not can_be_split(source, function):
        return
    returned = [statement.value for statement in source.all(ast.Return, function.body)]
    if not returned or any(value is None or _is_no_tensor(value) for value in returned):
        return
    names, result = parameters(function), source.fresh("result")
    inner = source.fresh(f"{function.name.strip('_')}_with_gradients")
    own = is_method(source, function)
    call = f"{f'{names[0]}.' if own else ''}{inner}({', '.join(names[own:])})"
    code = (
        f"with {torch}.enable_grad():\n    {result} = {call}\n"
        f"return {result} if {torch}.is_grad_enabled() else {result}.detach()"
    )
    text = split(source, function, body_edit(source, function, code), renamed(source, function, inner), torch)
    yield Proposal(_TITLE, _CAVEAT, text, last=True)


def _is_no_tensor(value: ast.expr) -> bool:
    return isinstance(value, _NO_TENSOR) or (isinstance(value, ast.Constant) and value.value is None)


RULE = Rule("gradient modes", ("recompilation",), _propose, ("recompile-global-state",))
