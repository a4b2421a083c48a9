"""A helper that cannot be traced: as an operator, or put into the graph as it is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from irscope.fixing.model import Example, Proposal, Rule
from irscope.fixing.source import Source
from irscope.fixing.syntax import Function
from irscope.protocol import Edit, Finding, Range

_MOST_STATEMENTS = 20
"""The most statements of a small helper."""

_OF_STATE = frozenset({
    "random", "rand", "rand_like", "randn", "randn_like", "randint", "randperm", "normal", "multinomial",
    "bernoulli", "dropout", "shuffle", "choice", "sample", "uniform", "uniform_", "normal_", "random_",
    "bernoulli_", "default_rng", "RandomState", "time", "time_ns", "perf_counter", "monotonic", "now", "print",
    "open", "input", "next", "write", "append", "extend", "insert", "add", "update", "pop", "popitem", "setdefault",
    "clear", "remove", "exec", "eval", "globals", "setattr", "uuid4",
})  # fmt: skip
"""What reads or changes something that stays from call to call."""
_CLOSES = re.compile(r"\s*,?\s*\)")


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    function, torch = helper_at(source, finding.range), source.torch
    if function is None:
        return
    decorator = source.before(function, "@torch._dynamo.nonstrict_trace")
    yield Proposal(
        "Put the helper into the graph without tracing it",
        "It must depend on its arguments only: what else it reads is compiled in.",
        source.changed({}, [*source.importing("import torch._dynamo"), decorator]), last=True,
    )  # fmt: skip
    if not _keeps_state(function):  # the compiler may merge two equal calls of an operator, or leave one out
        text = _with_operator(source, function, torch)
        caveat = "Check what the fake implementation says of shape and dtype; training needs `register_autograd`."
        yield Proposal("Make the helper an operator that the graph calls as a whole", caveat, text, last=True)


def helper_at(source: Source, range: Range) -> Function | None:
    """The function around a range, if it is a small one of the file that another function calls."""
    function = source.function(source.at(range))
    if function is None or function.decorator_list or source.parent(function) is not source.tree:
        return None
    simple = [statement for statement in source.all(ast.stmt, function) if not hasattr(statement, "body")]
    calls = [call for call in source.all(ast.Call) if getattr(call.func, "id", "") == function.name]
    is_called = any(source.function(call) not in (None, function) for call in calls)
    return function if is_called and len(simple) <= _MOST_STATEMENTS else None


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
        changes.append(Edit(Range(place, place), f" -> {torch}.Tensor"))
    untyped = [param for param in params if param.annotation is None]
    return source.changed({param: f"{param.arg}: {torch}.Tensor" for param in untyped}, changes)


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
HALVED = _OPERATOR.before
_AS_IT_IS = HALVED.replace("import torch", "import torch\nimport torch._dynamo").replace(
    "def halved", "@torch._dynamo.nonstrict_trace\ndef halved"
)
_EXAMPLES = (Example(HALVED, _AS_IT_IS, is_script=True), _OPERATOR)
RULE = Rule("helpers", ("graph-break",), _propose, examples=_EXAMPLES)
