"""A compiled function as two: a plain one that keeps the name, and one that it calls, which is compiled in its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import libcst as cst
import libcst.matchers as m

from irscope_server.fixing.families.sizes import compiling
from irscope_server.fixing.source import Change, Source, statements


def is_method(source: Source, function: cst.FunctionDef) -> bool:
    """Whether a function is one of a class."""
    return isinstance(source.parent(source.parent(function) or function), cst.ClassDef)


def can_be_split(source: Source, function: cst.FunctionDef) -> bool:
    """Whether it is a method, or the compiled function of the file, with plain parameters and no decorators but the one
    that compiles it."""
    params, compiled = function.params, _compiled(source, function)
    if params.kwonly_params or params.star_kwarg is not None or isinstance(params.star_arg, cst.Param):
        return False
    words = m.Yield() | m.Await() | m.Global() | m.Nonlocal() | m.Name("super") | m.Name("__class__")
    if not isinstance(function.body, cst.IndentedBlock) or function.asynchronous or m.findall(function.body, words):
        return False
    if is_method(source, function):
        return not function.decorators
    others = [one for one in function.decorators if one is not compiled and one.decorator is not compiled]
    return source.parent(function) is source.module and compiled is not None and not others


def split(
    source: Source, function: cst.FunctionDef, outer: cst.BaseSuite, inner: cst.FunctionDef, torch: str, first: str
) -> str:
    """The text with both functions.

    Parameters
    ----------
    outer
        What the plain function does; it calls ``inner``.
    first
        Which of the two is defined first: "outer" or "inner".
    """
    changes: dict[cst.CSTNode, Change] = {}
    disabled = cst.Decorator(cst.parse_expression(f"{torch}.compiler.disable(recursive=False)"))
    if not is_method(source, function):
        compiled = _compiled(source, function)
        inner = inner.with_changes(decorators=[_decorator(compiled)])
        if isinstance(compiled, cst.Call) and not isinstance(source.parent(compiled), cst.Decorator):
            changes[compiled] = cst.Name(function.name.value)
    plain = function.with_changes(decorators=[disabled], body=outer)
    space = [cst.EmptyLine(indent=False)] * (1 if is_method(source, function) else 2)
    order = [plain, inner] if first == "outer" else [inner, plain]
    order[0] = order[0].with_changes(leading_lines=function.leading_lines)
    order[1] = order[1].with_changes(leading_lines=space)
    return source.changed({**changes, function: cst.FlattenSentinel[cst.BaseStatement](order)})


def with_before(
    source: Source,
    function: cst.FunctionDef,
    torch: str,
    lines: Sequence[str],
    passed: Mapping[str, str],
    changes: Mapping[cst.CSTNode, Change],
) -> str:
    """The text with a plain function that does something first, and then calls the rest, which is compiled.

    Parameters
    ----------
    lines
        What is done first.
    passed
        What the rest gets beside the arguments: expressions, by the names that they have there.
    changes
        Of what the rest is made of.
    """
    params = [*function.params.posonly_params, *function.params.params]
    given = [one.name.value for one in params]
    rest = source.fresh(f"{function.name.value.strip('_')}_after")
    own = given[1:] if is_method(source, function) else given
    target = f"{given[0]}.{rest}" if is_method(source, function) else rest
    call = f"return {target}({', '.join([*own, *passed.values()])})"
    outer = cst.IndentedBlock(statements("\n".join([*lines, call])))
    kept = function.body.visit(_Changed(changes))
    assert isinstance(kept, cst.IndentedBlock)
    plain = [cst.Param(cst.Name(name)) for name in (*given, *passed)]
    inner = function.with_changes(
        name=cst.Name(rest), params=cst.Parameters(plain), returns=None,
        body=kept if kept.body else kept.with_changes(body=statements("pass")),
    )  # fmt: skip
    return split(source, function, outer, inner, torch, first="outer" if is_method(source, function) else "inner")


class _Changed(cst.CSTTransformer):
    def __init__(self, changes: Mapping[cst.CSTNode, Change]) -> None:
        super().__init__()
        self._changes = changes

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> Change:  # type: ignore[override]
        return self._changes.get(original_node, updated_node)


def _compiled(source: Source, function: cst.FunctionDef) -> cst.CSTNode | None:
    """The one compile of the file, if it is of this function: a decorator of it, or a call with its name."""
    found = compiling(source)
    if len(found) != 1:
        return None
    (one,) = found
    of_decorator = any(each is one or each.decorator is one for each in function.decorators)
    of_call = m.matches(one, m.Call(args=[m.Arg(m.Name(function.name.value), keyword=None), m.ZeroOrMore()]))
    return one if of_decorator or of_call else None


def _decorator(compiled: cst.CSTNode | None) -> cst.Decorator:
    if isinstance(compiled, cst.Decorator):
        return compiled.with_changes(leading_lines=[])
    call = cst.ensure_type(compiled or cst.Pass(), cst.Call)
    options = [arg for arg in call.args if arg.keyword is not None]
    return cst.Decorator(call.with_changes(args=options) if options else call.func)
