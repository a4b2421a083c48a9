"""A break in an installed library that is removed from the user's side: the user's file puts a changed copy of the
library's function in its place, and the library's file stays as it is.

The copy's code is put into the library's own function (``__code__``): it then reads the library's names, every module
that has imported the function has the change, and decorators stay.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import dataclasses
import itertools
import os
import re
from collections.abc import Iterator, Mapping, Sequence

from irscope.fixing.definitions import imports_for, needed_by, text_of
from irscope.fixing.edits import reindented
from irscope.fixing.places import path_in_library
from irscope.fixing.proposals import THEN, proposals, together
from irscope.fixing.source import Source, source_of
from irscope.fixing.syntax import Function
from irscope.fixing.texts import applied, edits_between
from irscope.fixing.top_level import last_import
from irscope.protocol import Edit, Finding, Fix, Position, Range
from irscope.usercode.bindings import last_word

_IN_A_COPY = ", in a copy of the function of "
_CAVEAT = "It is for the version of the library that is installed. Remove it when a release has the change."
_SUFFIX = "_without_break"
_PUT = re.compile(rf"^(?:inspect\.unwrap\()?(\w+)\.([\w.]+?)\)?\.__code__ = (\w+{_SUFFIX}\w*)\.__code__$", re.MULTILINE)
"""The line that puts a copy in the place of the library's function."""
_UNLIKE = frozenset({"classmethod", "setter", "cached_property", "contextmanager", "overload"})
"""Decorators whose result is not a function that `inspect.unwrap` leads back from."""

_OPERATOR = ".library.custom_op("
_SHORT, _MOST_CALLED = 60, 8
"""Lines of a function, and functions, that a function calls and that are looked at with it."""


def workarounds(there: Finding, text: str, library: str) -> Iterator[Fix]:
    """Changes of the user's text that put what the rules make of a library's function in its place.

    Args:
        there: The finding at the library's line (`in_library`).
        text, library: The user's file, and the library's file.
    """
    for fix, edits in _copies(there, text, library):
        title = f"{fix.title}{_IN_A_COPY}{os.path.basename(there.file)}"
        alone = Fix(title, together([fix.caveat, _CAVEAT]), edits, of_library=fix)
        yield alone
        yield from _with_draws(fix, alone, text, there, library)


def _with_draws(fix: Fix, alone: Fix, text: str, there: Finding, library: str) -> Iterator[Fix]:
    """A fix of a library, in a copy, together with operators for what the same module draws with NumPy.  Compiled code
    draws other numbers than plain code, so while that is so no fix of another line can be proven."""
    made, titles, caveats = applied(text, alone.edits), [alone.title], list[str]()
    for line in _draws(library):
        place = Range(Position(line, 0), Position(line, len(library.split("\n")[line - 1])))
        drawing = dataclasses.replace(there, code="GB0033", range=place)
        copies = _copies(drawing, made, library)
        for operator, edits in itertools.islice((copied for copied in copies if _OPERATOR in copied[1][0].text), 1):
            made = applied(made, edits)
            titles.append(f"{operator.title}{_IN_A_COPY}{os.path.basename(there.file)}")
            caveats.append(operator.caveat)
    if len(titles) > 1:
        both = dataclasses.replace(fix, caveat=together([*caveats, fix.caveat]))
        title, caveat = THEN.join(titles), together([*caveats, alone.caveat])
        yield Fix(title, caveat, edits_between(text, made), of_library=both)


def _copies(there: Finding, text: str, library: str) -> Iterator[tuple[Fix, tuple[Edit, ...]]]:
    """What rules propose for a finding at a library's line, with the edits that do it in the user's text."""
    small, module = about_one_function(library, there.range.start.line), module_of(there.file)
    for fix in proposals(there, small) if small else ():
        try:
            edits = _in_place(source_of(text), module, source_of(small), Source(applied(small, fix.edits)))
        except ValueError:
            continue
        if edits:
            yield fix, edits


def _draws(library: str) -> list[int]:
    """The first line of each function of a module that draws with NumPy and that the module itself calls."""
    if "random." not in library:
        return []
    source = source_of(library)
    first_lines = []
    for function in _called(source, source.tree):
        names = source.all(ast.Attribute, function)
        draws = [name for name in names if source.full_name(name).startswith("numpy.random.")]
        first_lines += [source.line(draw) for draw in draws[:1]]
    return first_lines[:_MOST_CALLED]


def about_one_function(text: str, line: int) -> str:
    """A text with the function or method at a line, the functions of the module that it calls, imports and loggers; the other
    lines are empty, so that all lines keep their numbers.  Empty if there is none."""
    _, function = function_at(text, line)
    if function is None:
        return ""
    source = source_of(text)
    called = [one for one in _called(source, function) if source.last_line(one) - source.line(one) < _SHORT]
    nodes = [node for node in source.tree.body if isinstance(node, (ast.Import, ast.ImportFrom)) or _makes_logger(node)]
    kept = _lines(source, [*nodes, function, *called[:_MOST_CALLED]])
    for owner in source.around(function):
        if isinstance(owner, ast.ClassDef):
            kept.update(range(owner.lineno, source.first_line(owner.body[0])))
    return "\n".join(code if number in kept else "" for number, code in enumerate(source.lines, 1))


def _lines(source: Source, nodes: Sequence[ast.stmt]) -> set[int]:
    """The lines of statements, with decorators."""
    return {line for node in nodes for line in range(source.first_line(node), source.last_line(node) + 1)}


def _makes_logger(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and ast.unparse(node.value).lower().partition("(")[0].endswith("logger")


def _called(source: Source, node: ast.AST) -> list[Function]:
    """The functions of a module that a node calls by their names: what breaks may come from there."""
    names = {call.func.id for call in source.all(ast.Call, node) if isinstance(call.func, ast.Name)}
    return [one for one in source.tree.body if isinstance(one, Function) and one.name in names]


def _functions(body: Sequence[ast.stmt], prefix: str = "") -> Iterator[tuple[str, Function]]:
    """The functions of a module and the methods of its classes, each after what Python calls it: ``Block.forward``,
    ``Block.size.fget`` of a property."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _functions(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, Function):
            yield f"{prefix}{node.name}{'.fget' if 'property' in _decorators(node) else ''}", node


def function_at(text: str, line: int) -> tuple[str, Function | None]:
    """The outermost function of a module, or method of a class, that a line is in, after what Python calls it.  The
    decorators belong to it."""
    with contextlib.suppress(ValueError):
        source = source_of(text)
        for name, node in _functions(source.tree.body):
            if source.first_line(node) <= line <= source.last_line(node):
                return name, node
    return "", None


def _in_place(user: Source, module: str, library: Source, changed: Source) -> tuple[Edit, ...]:
    """The edit of the user's text; empty if the copy cannot take the place of the library's function.

    Args:
        module: The library's module.
        library, changed: What of its text is about the function, as it is and with the change.
    """
    before, after = dict(_functions(library.tree.body)), dict(_functions(changed.tree.body))
    bodies = [{name: list(map(ast.dump, node.body)) for name, node in several.items()} for several in (before, after)]
    names = [name for name in before if name in after and bodies[0][name] != bodies[1][name]]
    place = after_imports(user)
    if len(names) != 1 or place is None or not _can_be_replaced(before[names[0]]):
        return ()
    (attribute,) = names
    function, made = before[attribute], after[attribute]
    needed = needed_by(made, changed)
    new = [
        node for node in changed.tree.body if isinstance(node, ast.Import) and changed.code(node) not in library.lines
    ]
    imported = [node for node in new if all("." not in alias.name for alias in node.names)]
    if _others(library, [function]) != _others(changed, [made, *needed, *imported]):
        return ()  # something else of the module is changed, too
    more = imports_for(needed, changed)
    if more is None or user.names & {node.name for node in needed if isinstance(node, ast.FunctionDef)} - {"_"}:
        return ()
    package, _, alias = module.rpartition(".")
    name, target = user.fresh(f"{function.name.strip('_')}{_SUFFIX}"), f"{alias}.{attribute}"
    if _decorators(function) - {"staticmethod", "property"}:
        more, target = ["import inspect", *more], f"inspect.unwrap({target})"
    imports = [*more, f"from {package} import {alias}" if package else f"import {alias}"]
    missing = "".join(f"{line}\n" for line in imports if line not in user.lines)
    code = text_of(needed, changed) + _copied(changed, made, name, imported)
    return (Edit(Range(place, place), f"{missing}\n\n{code}\n\n\n{target}.__code__ = {name}.__code__\n"),)


def _others(source: Source, nodes: Sequence[ast.stmt]) -> list[str]:
    """The lines of code but those of some statements."""
    inside = _lines(source, nodes)
    lines = [line for number, line in enumerate(source.lines, 1) if number not in inside]
    return [line for line in lines if line.strip() and not line.lstrip().startswith("#")]


def _can_be_replaced(node: Function) -> bool:
    """Whether code that was compiled outside of a class does the same: no ``super()``, no private names."""
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    attributes = {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
    private = any(name.startswith("__") and not name.endswith("__") for name in attributes)
    has_body = node.body[0].lineno > node.lineno and (len(node.body) > 1 or ast.get_docstring(node) is None)
    return has_body and not _decorators(node) & _UNLIKE and not names & {"super", "__class__"} and not private


def _decorators(node: Function) -> set[str]:
    """The last words of the decorators' names."""
    called = [decorator.func if isinstance(decorator, ast.Call) else decorator for decorator in node.decorator_list]
    return set(map(last_word, called))


def _copied(source: Source, node: Function, name: str, imports: Sequence[ast.Import]) -> str:
    """A function at the margin under another name, without what its code is not made of: decorators, annotations,
    docstring, and defaults that are no constants.  They stay those of the library.  It begins with the imports that the
    library's module does not have."""
    arguments = copy.deepcopy(node.args)
    for part in ast.walk(arguments):
        if isinstance(part, ast.arg):
            part.annotation = None
    arguments.defaults = [_constant(default) for default in arguments.defaults]
    arguments.kw_defaults = [default and _constant(default) for default in arguments.kw_defaults]
    body = "\n".join([*map(source.code, imports), source.block_code(_body(node))])
    word = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    return f"{word} {name}({ast.unparse(arguments)}):\n{reindented(body, '    ', '    ')}"


def _constant(default: ast.expr) -> ast.expr:
    return default if isinstance(default, ast.Constant) else ast.Constant(None)


def _body(node: Function) -> list[ast.stmt]:
    """The statements of a function after its docstring."""
    return node.body[ast.get_docstring(node) is not None and len(node.body) > 1 :]


def after_imports(source: Source) -> Position | None:
    """The line after the imports at the top of a text."""
    last = last_import(source, None)
    line = source.last_line(last) if last is not None else 0
    return Position(line + 1, 0) if 0 < line < len(source.lines) else None


def module_of(file: str) -> str:
    """The dotted name of a library's module, by its path."""
    name = path_in_library(file).removesuffix(".py").removesuffix("/__init__")
    return name.replace("/", ".")


def as_patches(before: str, after: str, libraries: Mapping[str, str]) -> dict[str, str]:
    """What the copies in a changed text of the user's are in the library: changed texts, by file.

    Args:
        before, after: The user's file.
        libraries: The texts of the files that copies may be of, by path.
    """
    paths = {module_of(path).rpartition(".")[2]: path for path in libraries}
    changed: dict[str, str] = {}
    for match in _PUT.finditer(after):
        alias, attribute, name = match.groups()
        if match[0] in before or alias not in paths:
            continue
        path, user = paths[alias], source_of(after)
        library = source_of(changed.get(path, libraries[path]))
        old, made = dict(_functions(library.tree.body)).get(attribute), dict(_functions(user.tree.body)).get(name)
        if old is not None and made is not None:
            changed[path] = _in_library(library, old, user, made)
    return changed


def _in_library(library: Source, old: Function, user: Source, made: Function) -> str:
    """The text of a library with a function as its copy in the user's text is; above it, what that one needs beside it."""
    code = reindented(user.block_code(_body(made)), " " * old.body[0].col_offset, library.indentation)
    there = {node.name for node in library.tree.body if isinstance(node, ast.FunctionDef)} - {"_"}
    needed = [node for node in needed_by(made, user) if getattr(node, "name", "") not in there]
    lines, first, start = library.lines, library.first_line(old) - 1, library.comments_above(_body(old)[0]) - 1
    start += not lines[start].strip()  # an empty line stays
    beside = text_of(needed, user).split("\n")[:-1]
    return "\n".join([*lines[:first], *beside, *lines[first:start], code, *lines[library.last_line(old) :]])
