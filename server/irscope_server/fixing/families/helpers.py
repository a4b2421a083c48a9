"""A helper that cannot be traced: as an operator, put into the graph as it is, or left out of it, the dearest last."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m
from irscope.protocol import Finding, FixMethod

from irscope_server.fixing.imports import with_import
from irscope_server.fixing.model import Family, Proposal
from irscope_server.fixing.source import Source

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


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    node = source.at(finding.range)
    function = source.function(node) if node is not None else None
    torch = source.module_name("torch")
    if function is None or torch is None or function.decorators or not _is_helper(source, function):
        return
    yield Proposal(
        "Put the helper into the graph without tracing it", "It must depend on its arguments only: what else it reads is compiled in.",
        with_import(_decorated(source, function, "torch._dynamo.nonstrict_trace"), "torch._dynamo"), last=True,
    )  # fmt: skip
    operator = _operator(source, function, torch)
    if operator is not None:
        yield Proposal(
            "Make the helper an operator that the graph calls as a whole",
            "Check what the fake implementation says of shape and dtype; training needs `register_autograd`.",
            operator, last=True,
        )  # fmt: skip
    yield Proposal(
        FixMethod.HELPER_TO_PYTHON.title,
        "The graph is cut at each call of it: two graphs more, and the helper runs as plain Python.",
        _decorated(source, function, f"{torch}.compiler.disable"), last=True, method=FixMethod.HELPER_TO_PYTHON,
    )  # fmt: skip


def _is_helper(source: Source, function: cst.FunctionDef) -> bool:
    """Whether it is a small function of the file that another function calls."""
    calls = m.findall(source.module, m.Call(func=m.Name(function.name.value)))
    called = [one for one in calls if (outer := source.function(one)) is not None and outer is not function]
    small = len(m.findall(function, m.SimpleStatementLine())) <= _MOST_STATEMENTS
    return small and bool(called) and source.parent(function) is source.module


def _decorated(source: Source, function: cst.FunctionDef, decorator: str) -> str:
    made = cst.Decorator(cst.parse_expression(decorator))
    return source.changed({function: function.with_changes(decorators=[made])})


def _operator(source: Source, function: cst.FunctionDef, torch: str) -> str | None:
    params = function.params
    if (
        params.star_arg is not cst.MaybeSentinel.DEFAULT
        or params.kwonly_params
        or params.star_kwarg
        or not params.params
    ):
        return None
    if any(one.default is not None for one in params.params):
        return None
    if _keeps_state(function):
        return None  # the compiler may merge two equal calls of an operator, or leave one out
    name = function.name.value
    tensor = cst.Annotation(cst.parse_expression(f"{torch}.Tensor"))
    typed = [one if one.annotation is not None else one.with_changes(annotation=tensor) for one in params.params]
    op = cst.Decorator(cst.parse_expression(f'{torch}.library.custom_op("user::{name}", mutates_args=())'))
    made = function.with_changes(
        decorators=[op], params=params.with_changes(params=typed), returns=function.returns or tensor
    )
    names = ", ".join(one.name.value for one in params.params)
    first = params.params[0].name.value
    fake = cst.parse_module(
        f"\n\n@{name}.register_fake\ndef _({names}):\n    return {torch}.empty_like({first})  # shape and dtype of the result\n"
    )
    body = [one for one in fake.body if isinstance(one, cst.FunctionDef)]
    body[0] = body[0].with_changes(leading_lines=[cst.EmptyLine(indent=False), cst.EmptyLine(indent=False)])
    return source.changed({function: cst.FlattenSentinel([made, *body])})


def _keeps_state(function: cst.FunctionDef) -> bool:
    """Whether a call may act on the next one, as far as the names show."""
    if m.findall(function, m.Global() | m.Nonlocal()):
        return True
    names = [one.value for one in m.findall(function.body, m.Name()) if isinstance(one, cst.Name)]
    return not _OF_STATE.isdisjoint(names)


FAMILY = Family("helpers", ("graph-break",), _propose)
