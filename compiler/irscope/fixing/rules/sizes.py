"""Sizes and numbers that vary from call to call: dynamic from the start, or marked before the call."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from irscope.fixing.compile_calls import DYNAMIC_CAVEAT, MARK_CAVEAT, compiling
from irscope.fixing.edits import argument
from irscope.fixing.marking import marked_at_call
from irscope.fixing.model import Example, Proposal, Rule
from irscope.fixing.source import Source, source_of
from irscope.fixing.texts import edits_between
from irscope.protocol import Finding, Fix, FixMethod

_MARK = "Mark the sizes that vary, before the call that compiled again"
_STATIC = "Compile for each size (`dynamic=False`)"
_STATIC_CAVEAT = "Each size is one more compile, up to the recompile limit."
_MARKS = ("torch._dynamo.mark_dynamic", "torch._dynamo.maybe_mark_dynamic")


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    compiled = compiling(source)
    if len(compiled) == 1:
        text = source.changed({}, [argument(source, compiled[0], "dynamic", "True")])
        yield Proposal(FixMethod.DYNAMIC_SIZES, DYNAMIC_CAVEAT, text)
    marked = marked_at_call(source, finding)
    if marked is not None:
        yield Proposal(_MARK, MARK_CAVEAT, marked)


def static_sizes(text: str, are_dynamic: bool) -> Fix | None:
    """A change of a text with one call of ``torch.compile``, which then compiles for each size; None if sizes are not dynamic.

    No finding asks for it: `irscope fix --measure` tries it, and says what was measured.

    Args:
        are_dynamic: Whether a run has made sizes dynamic that the text does not call so.
    """
    try:
        source = source_of(text)
        compiled = compiling(source)
        marking = [source.parent(call) for call in source.all(ast.Call) if source.full_name(call.func) in _MARKS]
        marks = [statement for statement in marking if isinstance(statement, ast.Expr)]
        keywords = [ast.unparse(keyword) for call in compiled for keyword in getattr(call, "keywords", ())]
        if len(compiled) != 1 or not (are_dynamic or marks or "dynamic=True" in keywords):
            return None
        changed = source.changed(dict.fromkeys(marks), [argument(source, compiled[0], "dynamic", "False")])
    except ValueError:
        return None
    return Fix(_STATIC, _STATIC_CAVEAT, edits_between(text, changed))


_EXAMPLES = (
    Example.script("""
        - @torch.compile(backend="eager")
        + @torch.compile(backend="eager", dynamic=True)
          def f(x):
              return x * 2

          for size in (4, 5):
              f(torch.ones(size))
    """),
    Example.script("""
          def f(x):
              return x * 2

          g = torch.compile(f, backend="eager")
          for size in (4, 5):
        -     g(torch.ones(size))
        +     x_2 = torch.ones(size)
        +     torch._dynamo.mark_dynamic(x_2, 0)
        +     g(x_2)
    """),
)
_CODES = ("recompile-size", "recompile-value", "recompile-condition")
RULE = Rule("sizes", ("recompilation",), _propose, _CODES, examples=_EXAMPLES)
