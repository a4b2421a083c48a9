"""Finds decisions that read a sentence back: conditions on the words of a finding, a fix or a gap.

A sentence is an attribute with a name of `WORDS`, a parameter of such a name, and what is set to one or made of one: in an
assignment, a loop, or a call of a function of the modules that are read.  A decision compares it, looks something up by it,
looks into it or cuts it apart.  PyTorch's own words are no sentence of irscope's: advice has to read them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

WORDS = frozenset({"message", "explanation", "hints", "reason", "title", "why", "what"})
_PYTORCH = frozenset({"cause", "BreakMessage"})
"""The field that has the message of PyTorch, and its type."""
_LOOKS = frozenset({
    "startswith", "endswith", "find", "rfind", "index", "rindex", "count", "split", "rsplit", "partition", "rpartition",
    "removeprefix", "removesuffix", "isidentifier", "isdigit",
})  # fmt: skip
_PATTERNS = frozenset({"search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split"})
"""Methods of a regular expression."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def decisions(trees: Mapping[str, ast.Module]) -> list[str]:
    """Where modules decide something by a sentence: ``file:line code``, one a line of source.

    Args:
        trees: The modules' syntax, by their paths.
    """
    functions = {line.name: line for tree in trees.values() for line in tree.body if isinstance(line, Function)}
    named: dict[str, set[str]] = {}
    while True:
        before = sum(map(len, named.values()))
        readers = {file: [_Reader(node, named) for node in _scopes(tree)] for file, tree in trees.items()}
        for reader in (reader for of_file in readers.values() for reader in of_file):
            for name, call in reader.calls():
                if name in functions:
                    _note(reader, call, functions[name], named)
        if sum(map(len, named.values())) == before:
            break
    places = {
        (file, node.lineno): ast.unparse(node)
        for file, of_file in readers.items()
        for reader in of_file
        for node in reader.decisions()
    }
    return [f"{file}:{line} {code}" for (file, line), code in sorted(places.items())]


def _scopes(tree: ast.Module) -> Iterator[Function]:
    """Functions and methods that are in no other function."""
    for line in tree.body:
        if isinstance(line, Function):
            yield line
        elif isinstance(line, ast.ClassDef):
            yield from (inner for inner in line.body if isinstance(inner, Function))


def _note(reader: _Reader, call: ast.Call, function: Function, named: dict[str, set[str]]) -> None:
    """Notes which parameters of a function a call gives sentences."""
    parameters = [parameter.arg for parameter in (*function.args.posonlyargs, *function.args.args)]
    given = [*zip(parameters, call.args, strict=False), *((word.arg, word.value) for word in call.keywords)]
    names = {name for name, value in given if name and reader.is_sentence(value)}
    named.setdefault(function.name, set()).update(names)


class _Reader:
    """What is a sentence in one function."""

    def __init__(self, function: Function, named: Mapping[str, set[str]]) -> None:
        self._nodes = list(ast.walk(function))
        parameters = [node for node in self._nodes if isinstance(node, ast.arg)]
        self._pytorch = {
            node.arg for node in parameters if node.annotation and ast.unparse(node.annotation) in _PYTORCH
        }
        self._names = {node.arg for node in parameters if node.arg in WORDS} | named.get(function.name, set())
        while any(self._take(target, value) for target, value in self._bindings()):
            pass

    def _bindings(self) -> Iterator[tuple[ast.expr, ast.expr]]:
        for node in self._nodes:
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    yield from _paired(target, node.value)
            elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
                yield node.target, node.value
            elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
                yield node.target, node.iter

    def _take(self, target: ast.expr, value: ast.expr) -> bool:
        """Notes that a name is a sentence; whether that is new."""
        if not isinstance(target, ast.Name) or target.id in self._names or not self.is_sentence(value):
            return False
        self._names.add(target.id)
        return True

    def is_sentence(self, node: ast.expr) -> bool:
        """Whether an expression is one, has some, or is made of one."""
        if isinstance(node, ast.Attribute):
            base = node.value
            owner = base.attr if isinstance(base, ast.Attribute) else base.id if isinstance(base, ast.Name) else ""
            return node.attr in WORDS and owner not in (*_PYTORCH, *self._pytorch)
        if isinstance(node, ast.Name):
            return node.id in self._names
        if isinstance(node, ast.Call):
            made_of = (
                [node.func.value, *(node.args if node.func.attr == "join" else [])]
                if isinstance(node.func, ast.Attribute)
                else []
            )
            return any(map(self.is_sentence, made_of))
        if isinstance(node, (ast.Subscript, ast.Starred, ast.FormattedValue)):
            return self.is_sentence(node.value)
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
            return self.is_sentence(node.elt)
        parts = (
            [node.body, node.orelse] if isinstance(node, ast.IfExp)
            else [node.left, node.right] if isinstance(node, ast.BinOp)
            else node.values if isinstance(node, (ast.BoolOp, ast.JoinedStr))
            else node.elts if isinstance(node, (ast.List, ast.Set, ast.Tuple))
            else []
        )  # fmt: skip
        return any(map(self.is_sentence, parts))

    def calls(self) -> Iterator[tuple[str, ast.Call]]:
        """The calls of functions by their names."""
        for node in self._nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                yield node.func.id, node

    def decisions(self) -> Iterator[ast.expr]:
        """The expressions that decide by a sentence."""
        for node in self._nodes:
            if isinstance(node, ast.Match) and self.is_sentence(node.subject):
                yield node.subject
            elif isinstance(node, ast.expr) and any(map(self.is_sentence, _read_by(node))):
                yield node


def _paired(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Targets with their values: of ``match, torch = a, b`` those at the same places."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        yield from zip(target.elts, value.elts, strict=True)
    else:
        yield target, value


def _read_by(node: ast.expr) -> list[ast.expr]:
    """What an expression reads to decide: operands of a comparison, what is looked into, and keys."""
    if isinstance(node, ast.Compare):
        is_plain = any(isinstance(side, ast.Constant) and not side.value for side in (node.left, *node.comparators))
        return [] if is_plain else [node.left, *node.comparators]  # with None or an empty text: whether there is one
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        looked_into = [node.func.value] if node.func.attr in _LOOKS else []
        return looked_into + (node.args if node.func.attr in (*_PATTERNS, "get") else [])
    if isinstance(node, ast.Subscript):
        return [node.slice]
    if isinstance(node, ast.DictComp):
        return [node.key]
    return [key for key in node.keys if key is not None] if isinstance(node, ast.Dict) else []
