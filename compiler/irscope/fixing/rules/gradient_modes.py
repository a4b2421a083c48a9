"""A function that is compiled with and without gradients: compiled once, with them, and its result is detached."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from irscope.fixing.model import Example, Proposal, Rule
from irscope.fixing.source import Source
from irscope.fixing.splitting import call_of, can_be_split, renamed, split, with_body
from irscope.protocol import GRAD_MODE, Finding, RecompilationFacts

_TITLE = "Run one graph with gradients, and detach its result where they are off"
_CAVEAT = (
    "Calls without gradients then keep what a backward would need while they run: more memory, and maybe slower. "
    "It is for where a second compile costs more."
)
_NO_TENSOR = (ast.Tuple, ast.List, ast.Dict, ast.Lambda, ast.ListComp, ast.DictComp)


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    torch, function = source.torch, source.function_at(finding.range)
    is_of_mode = isinstance(finding.facts, RecompilationFacts) and finding.facts.state == GRAD_MODE
    if not is_of_mode or not can_be_split(source, function):
        return
    returned = [statement.value for statement in source.all(ast.Return, function.body)]
    is_tensor = [value and not isinstance(value, _NO_TENSOR) and source.code(value) != "None" for value in returned]
    if not returned or not all(is_tensor):
        return
    inner, result = source.fresh(f"{function.name.strip('_')}_with_gradients"), source.fresh("result")
    code = (
        f"with {torch}.enable_grad():\n    {result} = {call_of(source, function, inner)}\n"
        f"return {result} if {torch}.is_grad_enabled() else {result}.detach()"
    )
    text = split(source, function, with_body(source, function, code), renamed(source, function, inner))
    yield Proposal(_TITLE, _CAVEAT, text, last=True)


_EXAMPLES = (
    Example.script("""
          @torch.compile(backend="eager")
        - def f(x):
        + def f_with_gradients(x):
              return x * 2

        +
        + @torch.compiler.disable(recursive=False)
        + def f(x):
        +     with torch.enable_grad():
        +         result = f_with_gradients(x)
        +     return result if torch.is_grad_enabled() else result.detach()
        +
          f(torch.ones(4))
          with torch.no_grad():
              f(torch.ones(4))
    """),
    Example.script("""
          class Net(torch.nn.Module):
        +     @torch.compiler.disable(recursive=False)
              def forward(self, x):
        +         with torch.enable_grad():
        +             result = self.forward_with_gradients(x)
        +         return result if torch.is_grad_enabled() else result.detach()
        +
        +     def forward_with_gradients(self, x):
                  return x * 2

          f = torch.compile(Net(), backend="eager")
          f(torch.ones(4))
          with torch.no_grad():
              f(torch.ones(4))
    """),
)
RULE = Rule("gradient modes", ("recompilation",), _propose, ("recompile-global-state",), examples=_EXAMPLES)
