"""Sizes and numbers that vary from call to call: dynamic from the start, or marked before the call."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from irscope.fixing.compile_calls import compiling, with_dynamic
from irscope.fixing.marking import marked_at_call
from irscope.fixing.model import Example, Proposal, Rule
from irscope.fixing.source import Source
from irscope.fixing.syntax import is_simple
from irscope.protocol import Finding, FixMethod, RecompilationFacts

_MARK = FixMethod.MARK_SIZES
_MARK_CAVEAT = "It raises where the code fixes such a size."
_UNBACKED = "Mark the size as unbacked, before the call"
_UNBACKED_CAVEAT = "It raises where the code depends on the size."
_DYNAMIC = FixMethod.DYNAMIC_SIZES
_DYNAMIC_CAVEAT = "All sizes are then dynamic from the first compile. Code for fixed sizes can be faster."


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    compiled = compiling(source)
    if len(compiled) == 1:
        text = source.changed({}, with_dynamic(source, compiled, "True"))
        yield Proposal(_DYNAMIC, _DYNAMIC_CAVEAT, text)
    yield from _marked(source, finding)
    marked = marked_at_call(source, finding)
    if marked is not None:
        yield Proposal(_MARK, _MARK_CAVEAT, marked)


def _marked(source: Source, finding: Finding) -> Iterator[Proposal]:
    """Marks before the first call; `irscope.findings.recompiling.sizes` works out which."""
    marks = finding.facts.marks if isinstance(finding.facts, RecompilationFacts) else None
    statements = source.on_line(marks.line, ast.stmt) if marks is not None else []
    calling = next((statement for statement in statements if is_simple(statement)), None)
    if marks is None or calling is None:
        return
    names = {code: name for name, code in marks.made}
    changes: dict[ast.AST, str | None] = {}
    for call in source.all(ast.Call, calling):
        for passed in (*call.args, *(keyword.value for keyword in call.keywords)):
            value = passed.value if isinstance(passed, ast.Starred) else passed
            if (name := names.get(source.code(value))) is not None:
                changes[value] = name
    title, caveat = (_UNBACKED, _UNBACKED_CAVEAT) if marks.are_unbacked else (_MARK, _MARK_CAVEAT)
    code = "\n".join([*marks.statements, source.code(calling, changes)])
    yield Proposal(title, caveat, source.changed({calling: code}))


RULE = Rule(
    "sizes",
    ("recompilation",),
    _propose,
    ("recompile-size", "recompile-value", "recompile-condition"),
    examples=(
        Example.script("""
              import torch

            - @torch.compile(backend="eager")
            + @torch.compile(backend="eager", dynamic=True)
              def f(x):
                  return x * 2

              for size in (4, 5):
                  f(torch.ones(size))
        """),
        Example.script("""
              import torch

              def f(x):
                  return x * 2

              g = torch.compile(f, backend="eager")
              for size in (4, 5):
            -     g(torch.ones(size))
            +     x = torch.ones(size)
            +     torch._dynamo.mark_dynamic(x, 0)
            +     g(x)
        """),
    ),
)
