"""A compiled function as two: a plain one that keeps the name, and one that it calls, which is compiled in its place."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence

from irscope.fixing.compile_calls import compiling
from irscope.fixing.edits import reindented
from irscope.fixing.source import Source
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
    """The parameters that a caller gives, without ``self``; None if there are others than plain ones."""
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


def split(source: Source, function: Function, outer: Edit, inner: str, torch: str) -> str:
    """The text with both functions; a method calls what is defined after it.

    Parameters
    ----------
    outer
        What makes the function the plain one, which calls the other.
    inner
        The code of the other.
    """
    changes: dict[ast.AST, str | None] = {}
    start, indent = source.range(function).start, _indent(source, function)
    disabled = f"@{torch}.compiler.disable(recursive=False)\n{indent}"
    place = Position(function.lineno, len(indent))
    plain = source.part(function, applied(source.text, [Edit(Range(start, place), disabled), outer]))
    compiled = _compiled(source, function)
    if is_method(source, function):
        decorator = f"@{_options(source, compiled)}\n" if compiled in function.decorator_list else ""
        return source.changed({function: f"{plain}\n\n{decorator}{inner}"})
    if isinstance(compiled, ast.Call) and compiled not in function.decorator_list:
        changes[compiled] = function.name
    return source.changed({**changes, function: f"@{_options(source, compiled)}\n{inner}\n\n\n{plain}"})


def with_before(
    source: Source,
    function: Function,
    torch: str,
    lines: Sequence[str],
    passed: Mapping[str, str],
    changes: Mapping[ast.AST, str | None],
) -> str:
    """The text with a plain function that does something first, and then calls the rest, which is compiled.

    Parameters
    ----------
    lines
        What is done first.
    passed
        What the rest gets beside the arguments: expressions, by the names that they have there.
    changes
        Of what the rest is made of: other expressions, and None for statements that go, with their comments.
    """
    given = parameters(function)
    rest = source.fresh(f"{function.name.strip('_')}_after")
    own = is_method(source, function)
    target = f"{given[0]}.{rest}" if own else rest
    call = f"return {target}({', '.join([*given[own:], *passed.values()])})"
    head = f"def {rest}({', '.join([*given, *passed])})"
    if all(changes.get(statement, "") is None for statement in function.body):
        inner = f"{head}:\n    pass"
    else:
        edits = [
            Edit(_with_comments(source, node, function) if code is None else source.range(node), code or "")
            for node, code in changes.items()
        ]
        edits.append(Edit(Range(source.range(function).start, _end_of_head(source, function)), head))
        inner = source.part(function, applied(source.text, edits))
    return split(source, function, body_edit(source, function, "\n".join([*lines, call])), inner, torch)


def with_after(
    source: Source,
    function: Function,
    first: Sequence[ast.stmt],
    kept: Sequence[ast.stmt],
    results: Mapping[str, str],
    lines: Sequence[str],
    plain: Mapping[Function, str],
) -> str:
    """The text with a plain function that calls the rest, which is compiled, and then does something with its results.

    Parameters
    ----------
    first
        The statements that stay before the call.
    kept
        The statements of the rest.
    results
        What the rest returns: expressions, by the names that they have in the plain function.
    lines
        What is done then.
    plain
        Decorators of other functions, which must not be compiled by themselves.
    """
    given, own = parameters(function), is_method(source, function)
    rest = source.fresh(f"{function.name.strip('_')}_before")
    computed = [f"{name} = {code}" for name, code in results.items() if name != code]
    code = [*map(source.code_with_comments, kept), *computed, f"return {', '.join(results)}"]
    inner = reindented("\n".join(code), source.indentation, source.indentation)
    call = f"{', '.join(results)} = {f'{given[0]}.' if own else ''}{rest}({', '.join(given[own:])})"
    outer = body_edit(source, function, "\n".join([*map(source.code_with_comments, first), call, *lines]))
    text = split(source, function, outer, f"def {rest}({', '.join(given)}):\n{inner}", source.torch)
    for helper, decorator in plain.items():
        changed, written = Source(text), source.code(helper)
        same = next(other for other in changed.all(ast.FunctionDef) if changed.code(other) == written)
        text = changed.changed({}, [changed.before(same, decorator)])
    return text


def body_edit(source: Source, function: Function, code: str) -> Edit:
    """The edit that gives a function another body."""
    body = reindented(code, _indent(source, function) + source.indentation, source.indentation)
    return Edit(Range(_end_of_head(source, function), source.range(function).end), f":\n{body}")


def renamed(source: Source, function: Function, name: str) -> str:
    """The code of a function with another name and without decorators."""
    line, column = function.lineno, len(_indent(source, function))
    head = re.match(r"def\s+\w+", source.lines[line - 1][column:])
    assert head is not None
    whole = Range(source.range(function).start, Position(line, column + head.end()))
    return source.part(function, applied(source.text, [Edit(whole, f"def {name}")]))


def _with_comments(source: Source, statement: ast.AST, function: Function) -> Range:
    """From the end of the line above a statement and its comments to the end of its last line."""
    assert isinstance(statement, ast.stmt)
    above, last = source.comments_above(statement) - 1, source.last_line(statement)
    end = min(Position(last, len(source.lines[last - 1])), source.range(function).end)
    return Range(Position(above, len(source.lines[above - 1])), end)


def _indent(source: Source, function: Function) -> str:
    line = source.lines[function.lineno - 1]
    return line[: len(line) - len(line.lstrip())]


def _end_of_head(source: Source, function: Function) -> Position:
    """The place of the colon before the body of a function."""
    start, end = (function.lineno, 0), source.range(function.body[0]).start
    colons = [token for token in source.tokens if start < token.start < (end.line, end.column) and token.string == ":"]
    return Position(*colons[-1].start)


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
