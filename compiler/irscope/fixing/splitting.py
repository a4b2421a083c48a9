"""A compiled function as two: a plain one that keeps the name, and one that it calls, which is compiled in its place."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence

from irscope.fixing.compile_calls import compiling
from irscope.fixing.edits import reindented
from irscope.fixing.source import Changes, Source
from irscope.fixing.syntax import Function
from irscope.fixing.texts import applied
from irscope.protocol import Edit, Position, Range

_WORDS = (ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal)


def is_method(source: Source, function: ast.AST) -> bool:
    """Whether a function is one of a class."""
    return isinstance(source.parent(function), ast.ClassDef)


def parameters(function: Function) -> list[str]:
    """The names of the parameters that can be given by position, ``self`` included."""
    return [parameter.arg for parameter in (*function.args.posonlyargs, *function.args.args)]


def given_parameters(source: Source, function: Function) -> list[str] | None:
    """The parameters that a caller gives, without ``self``; None if some are not plain ones."""
    if function.args.kwonlyargs or function.args.kwarg or function.args.vararg:
        return None
    return parameters(function)[is_method(source, function) :]


def can_be_split(source: Source, function: Function) -> bool:
    """Whether it is a method, or the compiled function of the file, with plain parameters and no decorators but the one
    that compiles it."""
    if given_parameters(source, function) is None or isinstance(function, ast.AsyncFunctionDef):
        return False
    names = {name.id for name in source.all(ast.Name, function.body)}
    if not source.owns_lines(*function.body) or source.all(_WORDS, function.body) or names & {"super", "__class__"}:
        return False
    compiled = _compiled(source, function)
    if [decorator for decorator in function.decorator_list if decorator is not compiled]:
        return False
    if is_method(source, function):
        return bool(parameters(function))
    return source.parent(function) is source.tree and compiled is not None


def split(source: Source, function: Function, plain: str, inner: str) -> str:
    """The text with both functions; a method calls what is defined after it.

    Args:
        plain: The code of the one that calls the other, without decorators.
        inner: The code of the other.
    """
    plain = f"@{source.torch}.compiler.disable(recursive=False)\n{plain}"
    compiled = _compiled(source, function)
    if is_method(source, function):
        decorator = f"@{_options(source, compiled)}\n" if compiled in function.decorator_list else ""
        return source.changed({function: f"{plain}\n\n{decorator}{inner}"})
    changes: dict[ast.AST, str | None] = {function: f"@{_options(source, compiled)}\n{inner}\n\n\n{plain}"}
    if isinstance(compiled, ast.Call) and compiled not in function.decorator_list:
        changes[compiled] = function.name
    return source.changed(changes)


def with_before(
    source: Source, function: Function, lines: Sequence[str], passed: Mapping[str, str], changes: Changes
) -> str:
    """The text with a plain function that does something first, and then calls the rest, which is compiled.

    Args:
        lines: What is done first.
        passed: What the rest gets beside the arguments: expressions, by the names that they have there.
        changes: The changes of the rest: other expressions, and None for statements that go, with their comments.
    """
    rest = source.fresh(f"{function.name.strip('_')}_after")
    kept = [statement for statement in function.body if changes.get(statement, "") is not None]
    inner = function_code(source, rest, [*parameters(function), *passed], source.block_code(kept, changes) or "pass")
    call = f"return {call_of(source, function, rest, *passed.values())}"
    return split(source, function, with_body(source, function, "\n".join([*lines, call])), inner)


def with_after(
    source: Source,
    function: Function,
    first: Sequence[ast.stmt],
    kept: Sequence[ast.stmt],
    results: Mapping[str, str],
    lines: str,
    plain: Mapping[Function, str],
) -> str:
    """The text with a plain function that calls the rest, which is compiled, and then does something with its results.

    Args:
        first: The statements that stay before the call.
        kept: The statements of the rest.
        results: What the rest returns: expressions, by the names that they have in the plain function.
        lines: What is done then.
        plain: Decorators of other functions, which must not be compiled by themselves.
    """
    rest = source.fresh(f"{function.name.strip('_')}_before")
    computed = [f"{name} = {code}" for name, code in results.items() if name != code]
    body = [source.block_code(kept), *computed, f"return {', '.join(results)}"]
    inner = function_code(source, rest, parameters(function), "\n".join(body).strip())
    call = f"{', '.join(results)} = {call_of(source, function, rest)}"
    outer = with_body(source, function, "\n".join([source.block_code(first), call, lines]).strip())
    text = split(source, function, outer, inner)
    for helper, decorator in plain.items():
        changed, written = Source(text), source.code(helper)
        same = next(other for other in changed.all(ast.FunctionDef) if changed.code(other) == written)
        text = changed.changed({}, [changed.before(same, decorator)])
    return text


def function_code(source: Source, name: str, given: Sequence[str], body: str) -> str:
    """The code of a function; the body is at the margin."""
    return f"def {name}({', '.join(given)}):\n{reindented(body, source.indentation, source.indentation)}"


def call_of(source: Source, function: Function, name: str, *more: str) -> str:
    """The call of a function, or of a method beside a method, with the arguments that a function gets, and more."""
    given, own = parameters(function), is_method(source, function)
    return f"{f'{given[0]}.' if own else ''}{name}({', '.join([*given[own:], *more])})"


def undecorated(source: Source, function: Function, *edits: Edit) -> str:
    """The code of a function without its decorators, with edits of it."""
    decorators = Range(source.range(function).start, _head(source, function).start)
    return source.part(function, applied(source.text, [Edit(decorators, ""), *edits]))


def with_body(source: Source, function: Function, code: str) -> str:
    """The code of a function with another body, without its decorators."""
    indent = source.lines[function.lineno - 1][: function.col_offset] + source.indentation
    body = Range(_head(source, function).end, source.range(function).end)
    return undecorated(source, function, Edit(body, f":\n{reindented(code, indent, source.indentation)}"))


def renamed(source: Source, function: Function, name: str) -> str:
    """The code of a function with another name and without decorators."""
    return re.sub(r"^def\s+\w+", f"def {name}", undecorated(source, function))


def _head(source: Source, function: Function) -> Range:
    """From the ``def`` of a function to the colon before its body."""
    start, end = (function.lineno, function.col_offset), source.range(function.body[0]).start
    colons = [token for token in source.tokens if start < token.start < (end.line, end.column) and token.string == ":"]
    return Range(Position(*start), Position(*colons[-1].start))


def _compiled(source: Source, function: Function) -> ast.expr | None:
    """The one compile of the file, if it is of this function: a decorator of it, or a call with its name."""
    compiles = compiling(source)
    if len(compiles) != 1:
        return None
    (compiled,) = compiles
    first = compiled.args[0] if isinstance(compiled, ast.Call) and compiled.args else None
    of_call = isinstance(first, ast.Name) and first.id == function.name
    return compiled if of_call or compiled in function.decorator_list else None


def _options(source: Source, compiled: ast.expr | None) -> str:
    """The decorator that compiles as a call does, or as a decorator."""
    assert compiled is not None
    if not isinstance(compiled, ast.Call) or not compiled.args:
        return source.code(compiled)
    options = [source.code(keyword) for keyword in compiled.keywords if keyword.arg is not None]
    return f"{source.code(compiled.func)}({', '.join(options)})" if options else source.code(compiled.func)
