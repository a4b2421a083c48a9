"""A break in an installed library that is removed from the user's side: the user's file puts a changed copy of the
library's function in its place, and the library's file stays as it is.

The copy's code is put into the library's own function (``__code__``): it then reads the library's names, every module
that has imported the function has the change, and decorators stay.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import os
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence

from irscope.fixing.definitions import imports_for, needed_by, text_of
from irscope.fixing.places import in_library, path_in_library
from irscope.fixing.proposals import proposals
from irscope.fixing.repairs import THEN, together
from irscope.fixing.texts import applied, edits_between
from irscope.protocol import Edit, Finding, Fix, Position, Range

_IN_A_COPY = ", in a copy of the function of "
_CAVEAT = "It is for the version of the library that is installed. Remove it when a release has the change."
_SUFFIX = "_without_break"
_PUT = re.compile(rf"^(?:inspect\.unwrap\()?(\w+)\.([\w.]+?)\)?\.__code__ = (\w+{_SUFFIX}\w*)\.__code__$", re.MULTILINE)
"""The line that puts a copy in the place of the library's function."""
_UNLIKE = frozenset({"classmethod", "setter", "cached_property", "contextmanager", "overload"})
"""Decorators whose result is not a function that `inspect.unwrap` leads back from."""

_NUMPY = re.compile(r"(?:np|numpy)\.random\.\w+$")
_OPERATOR = ".library.custom_op("
_IMPORTS = re.compile(r"(?:import \w+\n)+")
_SHORT, _MOST_CALLED = 60, 8
"""Lines of a function, and functions, that a function calls and that are looked at with it."""

_LONG = ('"""', "'''")
"""Strings of several lines, which would be other strings at another indentation."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclasses.dataclass(frozen=True)
class _Place:
    """A function of a module: its name with those of its classes, and its node."""

    qualified: str
    node: Function

    @property
    def attribute(self) -> str:
        """How Python calls the function: ``Block.size.fget`` of a property."""
        is_property = any(_word(one) == "property" for one in self.node.decorator_list)
        return f"{self.qualified}.fget" if is_property else self.qualified


def workarounds(finding: Finding, text: str, library: str) -> Iterator[Fix]:
    """Changes of the user's text that put what the rules make of a library's function in its place.

    Parameters
    ----------
    text, library
        Of the user's file, and of the library's file in which the cause of the finding lies.
    """
    there = in_library(finding)
    if there is None:
        return
    small = about_one_function(library, there.range.start.line)
    for fix in proposals(there, small) if small else ():
        edits = _in_place(text, there, library, applied(small, fix.edits), fix.edits)
        if edits:
            name = os.path.basename(there.file)
            alone = Fix(f"{fix.title}{_IN_A_COPY}{name}", together([fix.caveat, _CAVEAT]), edits, of_library=fix)
            yield alone
            yield from _with_draws(fix, alone, text, there, library)


def _with_draws(fix: Fix, alone: Fix, text: str, there: Finding, library: str) -> Iterator[Fix]:
    """A fix of a library, in a copy, together with operators for what the same module draws with NumPy.  Compiled code draws other numbers than
    plain code, so while that is so no fix of another line can be proven."""
    made, titles, caveats = applied(text, alone.edits), [alone.title], list[str]()
    for line in _draws(library):
        place = Range(Position(line, 0), Position(line, len(library.split("\n")[line - 1])))
        at = dataclasses.replace(there, code="GB0033", range=place)
        small = about_one_function(library, line)
        for one in proposals(at, small) if small else ():
            changed = applied(small, one.edits)
            edits = _in_place(made, at, library, changed, one.edits) if _OPERATOR in changed else ()
            if edits:
                made = applied(made, edits)
                titles.append(f"{one.title}{_IN_A_COPY}{os.path.basename(there.file)}")
                caveats.append(one.caveat)
                break
    if len(titles) > 1:
        both = dataclasses.replace(fix, caveat=together([*caveats, fix.caveat]))
        title, caveat = THEN.join(titles), together([*caveats, alone.caveat])
        yield Fix(title, caveat, edits_between(text, made), of_library=both)


def _draws(library: str) -> list[int]:
    """The first line of each function of a module that draws with NumPy and that the module itself calls."""
    if "random." not in library:
        return []
    module = ast.parse(library)
    called = {one.func.id for one in ast.walk(module) if isinstance(one, ast.Call) and isinstance(one.func, ast.Name)}
    found = []
    for function in (one for one in module.body if isinstance(one, ast.FunctionDef) and one.name in called):
        lines = [
            one.lineno
            for one in ast.walk(function)
            if isinstance(one, ast.Attribute) and _NUMPY.match(ast.unparse(one))
        ]
        found += [min(lines)] if lines else []
    return found[:_MOST_CALLED]


def about_one_function(text: str, line: int) -> str:
    """A text with the function or method at a line, the functions of the module that it calls, imports and loggers; the other
    lines are empty, so that all lines keep their numbers.  Empty if there is none."""
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    place = _function_at(module, line)
    if place is None:
        return ""
    kept: set[int] = set()
    for node in module.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)) or _makes_logger(node):
            kept.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    for owner in _classes(module, place):
        kept.update(range(owner.lineno, _first_line(owner.body[0])))
    for function in (place.node, *_called(module, place.node)):
        kept.update(range(_first_line(function), (function.end_lineno or function.lineno) + 1))
    return "\n".join(one if number in kept else "" for number, one in enumerate(text.split("\n"), 1))


def _makes_logger(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and ast.unparse(node.value).lower().partition("(")[0].endswith("logger")


def _called(module: ast.Module, function: Function) -> list[Function]:
    """The short functions of a module that a function calls by their names: what breaks may come from there."""
    names = {one.func.id for one in ast.walk(function) if isinstance(one, ast.Call) and isinstance(one.func, ast.Name)}
    found = [
        one for one in module.body if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)) and one.name in names
    ]
    return [one for one in found if (one.end_lineno or one.lineno) - one.lineno < _SHORT][:_MOST_CALLED]


def _first_line(node: ast.stmt) -> int:
    return min((one.lineno for one in getattr(node, "decorator_list", ())), default=node.lineno)


def _classes(module: ast.Module, place: _Place) -> Iterator[ast.ClassDef]:
    body: Sequence[ast.stmt] = module.body
    for name in place.qualified.split(".")[:-1]:
        found = next(one for one in body if isinstance(one, ast.ClassDef) and one.name == name)
        yield found
        body = found.body


def _function_at(
    module: ast.Module, line: int, first: Callable[[ast.stmt], int] = lambda node: node.lineno
) -> _Place | None:
    """The function of the module, or method of a class, that a line is in.  It begins where ``first`` says."""
    body, names = module.body, list[str]()
    while True:
        inside = next((one for one in body if first(one) <= line <= (one.end_lineno or one.lineno)), None)
        if isinstance(inside, ast.ClassDef):
            body = inside.body
            names.append(inside.name)
        elif isinstance(inside, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return _Place(".".join([*names, inside.name]), inside)
        else:
            return None


def attribute_at(text: str, line: int) -> str:
    """How Python calls the outermost function of a module, or method of a class, that a line is in: ``Block.forward``,
    ``Block.size.fget`` of a property.  Its decorators belong to it.  Empty if there is none."""
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    place = _function_at(module, line, _first_line)
    return place.attribute if place is not None else ""


def _in_place(text: str, there: Finding, library: str, changed: str, edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """The edit of the user's text; empty if the copy cannot take the place of the library's function."""
    imported, edits = _imports_apart(library, edits)
    tree = ast.parse(library)
    lines = (*(edit.range.start.line for edit in edits[:1]), there.range.start.line)
    before = next(filter(None, (_function_at(tree, line) for line in lines)), None)
    after = _named(changed, before.qualified) if before is not None else None
    place = after_imports(text)
    if before is None or after is None or place is None or not _is_changed_alone(before.node, after, changed, edits):
        return ()
    beside, more = _beside(text, changed, after)
    if more is None:
        return ()
    package, _, alias = module_of(there.file).rpartition(".")
    name, target = fresh(f"{before.node.name.strip('_')}{_SUFFIX}", text), f"{alias}.{before.attribute}"
    if any(_word(decorator) not in ("staticmethod", "property") for decorator in before.node.decorator_list):
        more, target = ["import inspect", *more], f"inspect.unwrap({target})"
    imports = [*more, f"from {package} import {alias}" if package else f"import {alias}"]
    missing = "".join(f"{line}\n" for line in imports if not has_line(text, line))
    code = beside + _copied(changed, after, name, imported)
    made = f"{missing}\n\n{code}\n\n\n{target}.__code__ = {name}.__code__\n"
    return (Edit(Range(place, place), made),)


def _beside(text: str, changed: str, function: Function) -> tuple[str, list[str] | None]:
    """What a copy needs beside it, and the imports of that; None for them if the user's file cannot have it."""
    module = ast.parse(changed)
    needed = needed_by(function, module)
    names = [node.name for node in needed if isinstance(node, ast.FunctionDef) and node.name != "_"]
    is_taken = any(re.search(rf"\b{name}\b", text) for name in names)
    return text_of(needed, changed), None if is_taken else imports_for(needed, module)


def _is_changed_alone(before: Function, after: Function, changed: str, edits: Sequence[Edit]) -> bool:
    """Whether the code of a function that can be replaced is changed, and nothing else of its module."""
    if not _can_be_replaced(before) or list(map(ast.dump, before.body)) == list(map(ast.dump, after.body)):
        return False  # only a decorator or a comment is changed
    body = "\n".join(changed.split("\n")[_body_start(changed, after) - 1 : after.end_lineno])
    last = before.end_lineno or before.lineno
    inside = all(edit.range.start.line >= before.lineno and edit.range.end.line <= last + 1 for edit in edits)
    return inside and not any(quotes in body for quotes in _LONG)


def _imports_apart(library: str, edits: Sequence[Edit]) -> tuple[str, list[Edit]]:
    """The imports that edits add to a module, and the other edits."""
    lines = enumerate(library.split("\n"), 1)
    first = next((number for number, line in lines if line.startswith(("def ", "class ", "@"))), 0)
    inserted = [edit for edit in edits if edit.range.start == edit.range.end and edit.range.start.line <= first]
    texts = {edit.range: edit.text.strip("\n") + "\n" for edit in inserted}
    imports = {where: text for where, text in texts.items() if _IMPORTS.fullmatch(text)}
    return "".join(imports.values()), [edit for edit in edits if edit.range not in imports]


def _can_be_replaced(node: Function) -> bool:
    """Whether code that was compiled outside of a class does the same: no ``super()``, no private names."""
    words = {_word(one) for one in node.decorator_list}
    names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    private = any(
        isinstance(one, ast.Attribute) and one.attr.startswith("__") and not one.attr.endswith("__")
        for one in ast.walk(node)
    )
    has_body = node.body[0].lineno > node.lineno and (len(node.body) > 1 or ast.get_docstring(node) is None)
    return has_body and not words & _UNLIKE and not names & {"super", "__class__"} and not private


def _word(decorator: ast.expr) -> str:
    """The last word of a decorator's name."""
    node = decorator.func if isinstance(decorator, ast.Call) else decorator
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _named(text: str, qualified: str) -> Function | None:
    """A function or method by its name; of a property, what reads it, which comes first."""
    try:
        body: Sequence[ast.stmt] = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    *classes, name = qualified.split(".")
    for one in classes:
        found = next((each for each in body if isinstance(each, ast.ClassDef) and each.name == one), None)
        body = found.body if found is not None else ()
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    functions = [one for one in body if isinstance(one, kinds) and one.name == name]
    return functions[0] if functions else None


def _copied(text: str, node: Function, name: str, imports: str) -> str:
    """A function at the margin under another name, without what its code is not made of: decorators, annotations,
    docstring, and defaults that are no constants.  They stay those of the library.  It begins with the imports that the
    library's module does not have."""
    arguments = copy.deepcopy(node.args)
    for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
        if one is not None:
            one.annotation = None
    arguments.defaults = [_constant(one) for one in arguments.defaults]
    arguments.kw_defaults = [one and _constant(one) for one in arguments.kw_defaults]
    body = textwrap.dedent("\n".join(text.split("\n")[_body_start(text, node) - 1 : node.end_lineno]))
    word = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    return f"{word} {name}({ast.unparse(arguments)}):\n{textwrap.indent(imports + body, '    ')}"


def _constant(default: ast.expr) -> ast.expr:
    return default if isinstance(default, ast.Constant) else ast.Constant(None)


def _body_start(text: str, node: Function) -> int:
    """The line where the statements of a function begin, after its docstring, with the comments above the first."""
    has_docstring = ast.get_docstring(node, clean=False) is not None
    before = (node.body[0].end_lineno or 0) if has_docstring else node.lineno
    start = _first_line(node.body[1 if has_docstring else 0])
    lines = text.split("\n")
    while start - 1 > before and lines[start - 2].lstrip().startswith("#"):
        start -= 1
    return start


def after_imports(text: str) -> Position | None:
    """The line after the imports at the top of a text."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    last = 0
    for one in body:
        if isinstance(one, (ast.Import, ast.ImportFrom)):
            last = one.end_lineno or one.lineno
        elif isinstance(one, (ast.FunctionDef, ast.ClassDef)):
            break
    return Position(last + 1, 0) if 0 < last < len(text.split("\n")) else None


def fresh(name: str, text: str) -> str:
    """A name that a text does not have: the given one, or one with a number."""
    made, number = name, 2
    while re.search(rf"\b{made}\b", text):
        made, number = f"{name}_{number}", number + 1
    return made


def has_line(text: str, line: str) -> bool:
    """Whether a line of a text is this one."""
    return re.search(rf"^{re.escape(line)}$", text, re.MULTILINE) is not None


def module_of(file: str) -> str:
    """The dotted name of a library's module, by its path."""
    name = path_in_library(file).removesuffix(".py").removesuffix("/__init__")
    return name.replace("/", ".")


def as_patches(before: str, after: str, libraries: Mapping[str, str]) -> dict[str, str]:
    """What the copies in a changed text of the user's are in the library: changed texts, by file.

    Parameters
    ----------
    before, after
        Of the user's file.
    libraries
        The texts of the files that copies may be of, by path.
    """
    known = {module_of(path).rpartition(".")[2]: path for path in libraries}
    changed: dict[str, str] = {}
    for match in _PUT.finditer(after):
        alias, qualified, name = match.groups()
        path, made = known.get(alias), _named(after, name)
        if match[0] in before or path is None or made is None:
            continue
        text = changed.get(path, libraries[path])
        old = _named(text, qualified.removesuffix(".fget"))
        if old is None:
            continue
        changed[path] = _in_library(text, old, after, made)
    return changed


def _in_library(text: str, old: Function, after: str, made: Function) -> str:
    """The text of a library with a function as its copy in the user's text is; above it, what that one needs beside it."""
    body = textwrap.dedent("\n".join(after.split("\n")[_body_start(after, made) - 1 : made.end_lineno]))
    code = textwrap.indent(body, " " * old.body[0].col_offset)
    there = {one.name for one in ast.parse(text).body if isinstance(one, ast.FunctionDef)} - {"_"}
    needed = [one for one in needed_by(made, ast.parse(after)) if getattr(one, "name", "") not in there]
    lines, first, start = text.split("\n"), _first_line(old) - 1, _body_start(text, old) - 1
    beside = text_of(needed, after).split("\n")[:-1]
    return "\n".join([*lines[:first], *beside, *lines[first:start], code, *lines[old.end_lineno :]])
