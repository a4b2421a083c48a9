"""What the rules about the source look at: each file of `compiler/` and `server/` is parsed and walked once for all rules."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).parents[2]
COMPILER, SERVER = ROOT / "compiler", ROOT / "server"
Node = TypeVar("Node", bound=ast.AST)
Rule = Callable[["Nodes"], Iterable[Any]]


class Nodes:
    """The nodes of a text, by their types."""

    def __init__(self, text: str) -> None:
        self._by_type: dict[type[ast.AST], list[Any]] = defaultdict(list)
        waiting: list[ast.AST] = [ast.parse(text)]
        while waiting:
            node = waiting.pop()
            self._by_type[type(node)].append(node)
            for value in vars(node).values():
                if isinstance(value, ast.AST):
                    waiting.append(value)
                elif isinstance(value, list):
                    waiting += [each for each in value if isinstance(each, ast.AST)]

    def of(self, kind: type[Node]) -> list[Node]:
        """Those of one type, or of what derives from it."""
        return [node for each, nodes in self._by_type.items() if issubclass(each, kind) for node in nodes]


_rules: list[Rule] = []
_found: dict[Rule, dict[Path, list[Any]]] = {}


def rule(look: Rule) -> Rule:
    """Declares what is to be found in each file.  pytest imports all tests first, so the first look is that of all rules."""
    _rules.append(look)
    return look


def found_by(look: Rule) -> dict[Path, list[Any]]:
    """What a rule finds, by file."""
    new = [each for each in _rules if each not in _found]
    if new:
        _found.update((each, {}) for each in new)
        for path in (file for folder in (COMPILER, SERVER) for file in sorted(folder.rglob("*.py"))):
            nodes = Nodes(path.read_text(encoding="utf-8"))
            for each in new:
                _found[each][path] = list(each(nodes))
    return _found[look]


def name_of(function: ast.expr) -> str:
    """The last name of what is called: ``Hook`` of ``hooks.Hook``."""
    return getattr(function, "id", None) or getattr(function, "attr", None) or ast.unparse(function).rpartition(".")[2]
