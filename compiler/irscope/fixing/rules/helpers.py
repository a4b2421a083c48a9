"""A helper that cannot be traced: as an operator, put into the graph as it is, or left out of it.

What is left out runs as plain Python, which costs most.  So does a function that runs as plain Python already: it stays so,
without a trial to trace it.
"""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Iterator

from irscope.fixing.changes import ChangeKind, SyntaxChange
from irscope.fixing.model import Example, Proposal, Rule
from irscope.fixing.source import Source
from irscope.fixing.syntax import Function
from irscope.protocol import BreakFacts, Finding, FixMethod, Range

_MOST_STATEMENTS = 20
"""Of what is still a small helper."""

_OF_STATE = frozenset({
    "random", "rand", "rand_like", "randn", "randn_like", "randint", "randperm", "normal", "multinomial",
    "bernoulli", "dropout", "shuffle", "choice", "sample", "uniform", "uniform_", "normal_", "random_",
    "bernoulli_", "default_rng", "RandomState", "time", "time_ns", "perf_counter", "monotonic", "now", "print",
    "open", "input", "next", "write", "append", "extend", "insert", "add", "update", "pop", "popitem", "setdefault",
    "clear", "remove", "exec", "eval", "globals", "setattr", "uuid4",
})  # fmt: skip
"""What reads or changes something that stays from call to call."""
_TRACED = "Put the helper into the graph without tracing it"
_TRACED_CAVEAT = "It must depend on its arguments only: what else it reads is compiled in."
_OPERATOR_CAVEAT = "Check what the fake implementation says of shape and dtype; training needs `register_autograd`."
_CUT = "The graph is cut at each call of it: two graphs more, and the helper runs as plain Python."
_STAYS = (
    "The function runs as plain Python, as it does now: no graph grows. What is gone is the trial to trace it. "
    "Each function that it calls is compiled by itself."
)
_CLOSES = re.compile(r"\s*,?\s*\)")


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    function, disable = source.function_at(finding.range), f"@{source.torch}.compiler.disable"
    if function.decorator_list:
        return
    if _is_small_helper(source, function):
        yield _decorated(source, function, "@torch._dynamo.nonstrict_trace", _TRACED, _TRACED_CAVEAT)
        if not _keeps_state(function):  # the compiler may merge two equal calls of an operator, or leave one out
            with contextlib.suppress(ValueError):
                text = _with_operator(source, function, source.torch)
                yield Proposal(
                    "Make the helper an operator that the graph calls as a whole", _OPERATOR_CAVEAT, text, last=True
                )
        yield _decorated(source, function, disable, FixMethod.HELPER_TO_PYTHON, _CUT)
    if isinstance(finding.facts, BreakFacts) and finding.facts.leaves_function_to_python:
        yield _decorated(source, function, f"{disable}(recursive=False)", FixMethod.FUNCTION_TO_PYTHON, _STAYS)


def _decorated(source: Source, function: Function, decorator: str, does: FixMethod | str, caveat: str) -> Proposal:
    imports = source.importing("import torch._dynamo") if "_dynamo" in decorator else []
    return Proposal(does, caveat, source.changed({}, [*imports, source.before(function, decorator)]), last=True)


def _is_small_helper(source: Source, function: Function) -> bool:
    """Whether a function is one of the file that another function calls."""
    simple = [statement for statement in source.all(ast.stmt, function) if not hasattr(statement, "body")]
    calls = [call for call in source.all(ast.Call) if getattr(call.func, "id", "") == function.name]
    is_called = any(source.function(call) not in (None, function) for call in calls)
    return source.parent(function) is source.tree and is_called and len(simple) <= _MOST_STATEMENTS


def _with_operator(source: Source, function: Function, torch: str) -> str:
    """Raises ValueError for parameters that the schema of an operator cannot have."""
    given, name = function.args, function.name
    params = given.args
    if not params or given.posonlyargs or given.vararg or given.kwonlyargs or given.kwarg or given.defaults:
        raise ValueError("an operator has no such parameters")
    decorator = f'@{torch}.library.custom_op("user::{name}", mutates_args=())'
    fake = (
        f"\n\n@{name}.register_fake\ndef _({', '.join(param.arg for param in params)}):\n"
        f"    return {torch}.empty_like({params[0].arg})  # shape and dtype of the result"
    )
    changes = [source.before(function, decorator), source.after(function, fake)]
    closes = _CLOSES.match(source.text, source.span(params[-1])[1])
    if function.returns is None and closes is not None:
        place = source.position(closes.end())
        changes.append(SyntaxChange(ChangeKind.EXPRESSION, Range(place, place), f" -> {torch}.Tensor"))
    return source.changed(
        {param: f"{param.arg}: {torch}.Tensor" for param in params if param.annotation is None}, changes
    )


def _keeps_state(function: Function) -> bool:
    """Whether a call may act on the next one, as far as the names show."""
    nodes = [node for statement in function.body for node in ast.walk(statement)]
    names = {getattr(node, field, None) for node in nodes for field in ("id", "attr", "arg")}
    return any(isinstance(node, (ast.Global, ast.Nonlocal)) for node in nodes) or not _OF_STATE.isdisjoint(names)


_OPERATOR = Example.script("""
      import torch


    - def halved(x):
    + @torch.library.custom_op("user::halved", mutates_args=())
    + def halved(x: torch.Tensor) -> torch.Tensor:
          return torch.tensor(x.tolist()) / 2
    +
    +
    + @halved.register_fake
    + def _(x):
    +     return torch.empty_like(x)  # shape and dtype of the result


      @torch.compile(backend="eager")
      def f(x):
          return halved(x) + 1


      f(torch.ones(4))
""")
_HALVED = _OPERATOR.before
_IMPORTING = _HALVED.replace("import torch", "import torch\nimport torch._dynamo")
_EXAMPLES = (
    *(
        Example(_HALVED, text.replace("def halved", f"@torch.{decorator}\ndef halved"), is_script=True)
        for text, decorator in ((_IMPORTING, "_dynamo.nonstrict_trace"), (_HALVED, "compiler.disable"))
    ),
    _OPERATOR,
    Example.script("""
        + @torch.compiler.disable(recursive=False)
          def f(x):
              for _ in range(2):
                  torch._dynamo.graph_break()
                  x = x + 1
              return x

          torch.compile(f, backend="eager")(torch.ones(4))
    """),
)
RULE = Rule("helpers", ("graph-break",), _propose, examples=_EXAMPLES)
