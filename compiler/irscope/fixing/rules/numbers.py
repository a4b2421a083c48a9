"""Numbers of arguments, modules and globals that change from call to call: as tensors, so that their values are not compiled in."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from irscope.fixing.marking import argument_of, triggering_call
from irscope.fixing.model import Example, Proposal, Rule
from irscope.fixing.source import Source
from irscope.protocol import Finding, RecompilationFacts

_TITLE = "Keep the number in a tensor"
_CAVEAT = "Code that needs a Python number then breaks the graph."


def changed_number(finding: Finding) -> RecompilationFacts | None:
    """What is known about a number of a plain name that changed, ``n`` or ``self.step``; None if something else did."""
    facts = finding.facts
    if not isinstance(facts, RecompilationFacts) or not facts.number:
        return None
    return facts if all(part.isidentifier() for part in facts.source.split(".")) else None


def is_integer(number: RecompilationFacts) -> bool:
    """Whether the number was an integer."""
    return number.number.lstrip("-").isdigit()


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    number, torch = changed_number(finding), source.torch
    function = next(iter(source.on_line(finding.range.start.line, ast.FunctionDef)), None)
    if number is None:
        return
    end = ")" if is_integer(number) else f", dtype={torch}.float64)"
    call = triggering_call(source, finding)
    if function is not None and call is not None:
        value, taken = argument_of(source, function, call, number.source) or (None, "")
        if value is not None and not taken:
            text = source.changed({value: f"{torch}.tensor({source.code(value)}{end}"})
            yield Proposal("Pass the number as a tensor", _CAVEAT, text)
    head, _, name = number.source.rpartition(".")
    changes: dict[ast.AST, str | None] = {}
    for assign in source.all(ast.Assign):
        match assign.targets:
            case [ast.Name(id=target)] if not head and target == name:
                if source.function(assign) is not None:
                    return  # a local name of that name: which one is meant is not certain
            case [ast.Attribute(attr=target)] if head == "self" and target == name:
                pass
            case _:
                continue
        if function is None or function not in source.around(assign):
            changes[assign.value] = f"{torch}.tensor({source.code(assign.value)}{end}"
    if changes:
        yield Proposal(_TITLE, _CAVEAT, source.changed(changes))


_EXAMPLES = (
    Example.script("""
          @torch.compile(backend="eager")
          def f(x, scale):
              return x * scale

          f(torch.ones(4), 0.5)
        - f(torch.ones(4), 0.25)
        + f(torch.ones(4), torch.tensor(0.25, dtype=torch.float64))
    """),
    Example.script("""
        - scale = 0.5
        + scale = torch.tensor(0.5, dtype=torch.float64)

          @torch.compile(backend="eager")
          def f(x):
              return x * scale

          f(torch.ones(4))
        - scale = 0.25
        + scale = torch.tensor(0.25, dtype=torch.float64)
          f(torch.ones(4))
    """),
)
RULE = Rule("numbers", ("recompilation",), _propose, ("recompile-value",), examples=_EXAMPLES)
