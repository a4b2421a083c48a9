"""Which expression of the user's call a parameter of the compiled function got its value from."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator

from irscope.findings.recompiling.calls import Call
from irscope.internals.dynamo_frames import Entrance
from irscope.usercode.source import line_text, node_at_range, parents, range_of_node, text_of_range
from irscope.vocabulary.records import dataclass

_ROOT = re.compile(r"[^\W\d]\w*")
_KEY = re.compile(r"\['(?P<name>[^']*)'\]|\[(?P<index>\d+)\]")
_SIMPLE = (ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Delete, ast.Raise, ast.Assert)
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@dataclass(frozen=True)
class Argument:
    """What the user's call passes.

    Args:
        expression: As it is written in the call, or as it can be written before it: ``ids``, ``batch["ids"]``.
        plain: Whether it can be written twice: a name, attributes and items of it.
        parameter: The parameter that gets it.
        written: Whether the call itself has this expression as an argument.
    """

    expression: str
    plain: bool
    parameter: str
    written: bool


class CallSite:
    """The user's call of a compiled function, as it is written.

    Args:
        call: The call.
        function: The function that was compiled, where its text is the user's.
    """

    def __init__(self, call: Call, function: Function | None) -> None:
        self._call = call
        self._function = function
        self._node = _call_node(call)
        self._given = dict(self._bind()) if self._node is not None and self._is_understood() else {}

    @property
    def callee(self) -> str:
        """What is called, as it is written; empty if it is not known."""
        return ast.unparse(self._node.func) if self._node is not None and self._is_understood() else ""

    @property
    def line(self) -> int | None:
        """The line before which a statement can be put that is then executed before the call; None if there is none:
        a call in a loop of a comprehension, in a condition of ``while``, or in the line of its loop."""
        node: ast.AST | None = self._node
        above = parents(self._call.place.file) if self._call.place else {}
        while node is not None and not isinstance(node, ast.stmt):
            if isinstance(node, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
                return None
            node = above.get(node)
        if not isinstance(node, _SIMPLE) or self._call.place is None:
            return None
        first = line_text(self._call.place.file, node.lineno)
        alone = not first.encode()[: node.col_offset].strip()  # not in the line of a loop or of another statement
        return node.lineno if alone else None

    def argument(self, path: str) -> Argument | None:
        """What a tensor that a guard names (``x``, ``kwargs['ids']``) is at the call; None if it is not known."""
        root = _ROOT.match(path)
        if root is None:
            return None
        rest = path[root.end() :]
        parameters = self._call.parameters
        key = _KEY.match(rest)
        if root[0] == parameters.rest and key and key["index"]:
            name, rest = f"*{key['index']}", rest[key.end() :]
        elif root[0] == parameters.keywords and key and key["name"] is not None:
            name, rest = key["name"], rest[key.end() :]
        else:
            name = root[0]
        given = self._given.get(name)
        if given is None or (rest and not given.plain):
            return None
        written = given.written and not rest
        return Argument(given.expression + rest.replace("'", '"'), given.plain, given.parameter, written)

    def names(self) -> set[str]:
        """The names in the scope of the call, which a new variable must not have."""
        above = parents(self._call.place.file) if self._call.place else {}
        scope: ast.AST | None = self._node
        while scope in above and not isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)):
            scope = above[scope]
        found = (node for node in (ast.walk(scope) if scope is not None else ()) if isinstance(node, ast.Name))
        return {node.id for node in found if not _is_parameter(node, scope, above)}

    def _is_understood(self) -> bool:
        """False if Python calls something else that calls the function: ``map(f, xs)``, ``partial(f, x)()``."""
        assert self._node is not None
        function = self._node.func
        if self._call.entrance is Entrance.INDIRECT or not isinstance(function, (ast.Name, ast.Attribute)):
            return False
        return not (isinstance(function, ast.Name) and hasattr(builtins, function.id))

    def _bind(self) -> Iterator[tuple[str, Argument]]:
        assert self._node is not None
        parameters = self._call.parameters
        values = [*self._self(), *self._node.args]
        given: dict[str, Argument] = {}
        names = [*parameters.positional, *(f"*{i}" for i in range(parameters.rest_count))]
        for index, name in enumerate(names):
            if index >= len(values) or isinstance(values[index], ast.Starred):
                for later in range(index, len(names)) if index == len(values) - 1 else ():
                    if (item := self._item(values[index], str(later - index), names[later])) is not None:
                        given[names[later]] = item
                break
            given[name] = self._written(values[index], name)
        unpacked = [keyword.value for keyword in self._node.keywords if keyword.arg is None]
        for keyword in self._node.keywords:
            if keyword.arg is not None:
                given[keyword.arg] = self._written(keyword.value, keyword.arg)
        missing = [name for name in (*parameters.positional, *parameters.keyword_only) if name not in given]
        if len(unpacked) == 1:
            known = {path for path in self._call.tensors if path.startswith(f"{parameters.keywords}[")}
            for name in [*missing, *(m["name"] for path in known if (m := _KEY.search(path)) and m["name"])]:
                if name not in given and (item := self._item(unpacked[0], f'"{name}"', name)) is not None:
                    given[name] = item
        elif not unpacked and not self._may_be_missing(missing):
            return  # something was bound before, as by `functools.partial`
        yield from given.items()

    def _self(self) -> list[ast.expr]:
        """The object that the call is a method of."""
        assert self._node is not None
        parameters, function = self._call.parameters, self._node.func
        count = len(parameters.positional) + parameters.rest_count
        if self._call.entrance is Entrance.MODULE:
            # PyTorch's own wrapper around a module gets the arguments alone.
            bound = not parameters.positional and count == len(self._node.args)
            return [] if bound else [function]
        first = parameters.positional[:1] == ("self",) or (
            not parameters.positional and count == len(self._node.args) + 1
        )
        if isinstance(function, ast.Attribute) and first:
            return [function.value]
        return []

    def _written(self, node: ast.expr, parameter: str) -> Argument:
        file = self._call.place.file if self._call.place is not None else ""
        text = text_of_range(file, range_of_node(file, node))
        given = self._node is not None and node is not self._node.func  # else it is what `self` is
        return Argument(text if "\n" not in text else ast.unparse(node), _is_plain(node), parameter, given)

    def _item(self, starred: ast.expr, key: str, parameter: str) -> Argument | None:
        value = starred.value if isinstance(starred, ast.Starred) else starred
        return Argument(f"{ast.unparse(value)}[{key}]", True, parameter, False) if _is_plain(value) else None

    def _may_be_missing(self, names: list[str]) -> bool:
        if self._function is None:
            return True
        arguments = self._function.args
        positional = [each.arg for each in (*arguments.posonlyargs, *arguments.args)]
        optional = set(positional[len(positional) - len(arguments.defaults) :]) if arguments.defaults else set()
        optional |= {
            each.arg
            for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
            if default is not None
        }
        return set(names) <= optional


def _call_node(call: Call) -> ast.Call | None:
    node = node_at_range(call.place.file, call.place.range) if call.place is not None else None
    return node if isinstance(node, ast.Call) else None


def _is_parameter(name: ast.Name, scope: ast.AST | None, above: dict[ast.AST, ast.AST]) -> bool:
    """Whether a name is a parameter of a function inside of a scope."""
    node: ast.AST | None = name
    while node is not None and node is not scope:
        if isinstance(node, Function) and any(
            argument.arg == name.id for argument in ast.walk(node.args) if isinstance(argument, ast.arg)
        ):
            return True
        node = above.get(node)
    return False


def _is_plain(node: ast.expr) -> bool:
    if isinstance(node, ast.Attribute):
        return _is_plain(node.value)
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, (ast.Constant, ast.Name)) and _is_plain(node.value)
    return isinstance(node, ast.Name)
