"""What the names of a file are bound to, by its syntax."""

from __future__ import annotations

import ast
import builtins
import functools
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

Function = ast.FunctionDef | ast.AsyncFunctionDef
Binding = str | ast.AST | None
"""What a name is bound to: an imported name, a value or a function, or something that is not known."""
Answer = TypeVar("Answer")


def asked_once(otherwise: Any) -> Callable[[Callable[..., Answer]], Callable[..., Answer]]:
    """A method that keeps its answers, since names lead to names; a name that leads back to itself has another answer."""

    def decorate(method: Callable[..., Answer]) -> Callable[..., Answer]:
        @functools.wraps(method)
        def ask(self: Any, *about: Any) -> Answer:
            answers = vars(self).setdefault(f"{method.__name__} by arguments", {})
            if about not in answers:
                answers[about] = otherwise
                answers[about] = method(self, *about)
            return answers[about]  # type: ignore[no-any-return]

        return ask

    return decorate


class Bindings:
    """The names of a file.

    A name of a scope is that of all scopes: it is known only where each of its bindings is.  An attribute of ``self``
    belongs to its class and to those of the file that it is related to.
    """

    def __init__(self, tree: ast.AST) -> None:
        nodes = list(ast.walk(tree))
        self.classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
        in_classes = {statement for node in self.classes for statement in node.body}
        self.methods = [statement for statement in in_classes if isinstance(statement, Function)]
        self._all: dict[str, list[Binding]] = {}
        self._class_of = {inner: node for node in self.classes for inner in ast.walk(node)}
        self._family = _families(self.classes)
        self._bound_in: set[tuple[str, str]] = set()
        """Attributes, with the family of the class that binds them."""
        for node in nodes:
            for name, value in bound(node):
                name = f"self.{name}" if node in in_classes else name
                self._all.setdefault(name, []).append(value)
                if name.startswith("self.") and node in self._class_of:
                    self._bound_in.add((self._family[self._class_of[node].name], name))
        self._hides_builtins = any(map(_hides_builtins, nodes))

    def __contains__(self, name: str) -> bool:
        return name in self._all

    def of(self, node: ast.AST) -> list[Binding]:
        """All that a name, or a dotted name, may be bound to; empty if the file does not bind it."""
        name = dotted(node)
        bound = self._all.get(name, [])
        if bound and name.startswith("self.") and isinstance(node, ast.Attribute):
            owner = self._class_of.get(node)
            if owner is not None and (self._family[owner.name], name) not in self._bound_in:
                return [None]  # a base class of another file may have bound it
        return bound

    @asked_once(())
    def names(self, node: ast.AST) -> tuple[str, ...]:
        """All full names that an expression may have, such as ``builtins.print``; none if one is not known."""
        if bound := self.of(node):
            names = [(value,) if isinstance(value, str) else self.names(value) if value else () for value in bound]
            return tuple(dict.fromkeys(name for several in names for name in several)) if all(names) else ()
        if isinstance(node, ast.Attribute):
            return tuple(f"{head}.{node.attr}" for head in self.names(node.value))
        is_builtin = isinstance(node, ast.Name) and hasattr(builtins, node.id) and not self._hides_builtins
        return (f"builtins.{node.id}",) if isinstance(node, ast.Name) and is_builtin else ()

    def function(self, node: ast.expr) -> Function | None:
        """The file's own function that a name means; a method may be that of a subclass."""
        bound = self._all.get(node.id, []) if isinstance(node, ast.Name) else []
        return bound[0] if len(bound) == 1 and isinstance(bound[0], Function) else None


def dotted(node: ast.AST) -> str:
    """``self.log`` as a text; empty if an expression is not a dotted name."""
    if isinstance(node, ast.Attribute):
        head = dotted(node.value)
        return f"{head}.{node.attr}" if head else ""
    return node.id if isinstance(node, ast.Name) else ""


def last_word(node: ast.AST) -> str:
    """``info`` of ``self.log.info``."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def targets_of(node: ast.AST) -> list[ast.expr]:
    """What a statement, or a part of one, binds, changes or deletes."""
    target = getattr(node, "optional_vars" if isinstance(node, ast.withitem) else "target", None)
    return list(node.targets) if isinstance(node, (ast.Assign, ast.Delete)) else [target] if target is not None else []


def _families(classes: list[ast.ClassDef]) -> dict[str, str]:
    """Maps each class, by name, to the name of a class that stands for all its relatives."""
    family = {node.name: node.name for node in classes}
    for node in classes:
        for base in map(last_word, node.bases):
            if base in family and family[base] != family[node.name]:
                joined, into = family[node.name], family[base]
                family = {name: into if head == joined else head for name, head in family.items()}
    return family


def _hides_builtins(node: ast.AST) -> bool:
    """Whether a part of a file may give a builtin another meaning, without binding its name there."""
    if isinstance(node, ast.ImportFrom):
        known = (node.module or "").partition(".")[0] in ("math", "torch", "typing")
        return not known and any(alias.name == "*" for alias in node.names)
    return any(dotted(target).startswith(("builtins.", "__builtins__.")) for target in targets_of(node))


_ASSIGNING = (ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.withitem, ast.AugAssign, ast.For, ast.comprehension)


def bound(node: ast.AST) -> Iterator[tuple[str, Binding]]:
    """The names that a node binds by itself, with what they are bound to."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield (alias.asname, alias.name) if alias.asname else (alias.name.partition(".")[0],) * 2
    elif isinstance(node, ast.ImportFrom):
        for alias in node.names:
            yield alias.asname or alias.name, f"{'.' * node.level}{node.module or ''}.{alias.name}"
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name, None if isinstance(node, ast.ClassDef) else node
    elif isinstance(node, ast.arguments):
        yield from _arguments(node)
    elif isinstance(node, _ASSIGNING):
        yield from _assigned(node)
    elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
        yield node.name, None


def _arguments(arguments: ast.arguments) -> Iterator[tuple[str, Binding]]:
    stars = ((arguments.vararg, ast.Tuple([])), (arguments.kwarg, ast.Dict([], [])))
    yield from ((arg.arg, value) for arg, value in stars if arg)
    for arg in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        yield arg.arg, ast.Call(arg.annotation, [], []) if arg.annotation is not None else None


def _assigned(node: ast.AST) -> Iterator[tuple[str, Binding]]:
    """The names that are bound as a target, with the values of those that are one by themselves."""
    value = getattr(node, "context_expr" if isinstance(node, ast.withitem) else "value", None)
    value = None if isinstance(node, ast.AugAssign) else value
    for target in targets_of(node):
        for inner in ast.walk(target) if dotted(target) == "" else [target]:
            if isinstance(getattr(inner, "ctx", None), ast.Store) and dotted(inner):
                yield dotted(inner), value if inner is target else None
