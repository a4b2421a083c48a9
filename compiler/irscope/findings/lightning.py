"""Graph breaks in Lightning's own code where a whole LightningModule is compiled: its logging runs outside of graphs."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from irscope.events.stack import FramePlace
from irscope.findings.deliberate import shown, words
from irscope.fixing.advice.model import Option, Words
from irscope.usercode.source import parse

_MODULES = ("/lightning/pytorch/core/module.py", "/pytorch_lightning/core/module.py")
_EXAMPLE = "net"


def is_in_module(beneath: Sequence[FramePlace]) -> bool:
    """Whether the user's code calls a method of LightningModule, such as ``self.log``, that breaks the graph.

    Parameters
    ----------
    beneath
        The frames below the user's place, outermost first.
    """
    return bool(beneath) and beneath[0].file.replace("\\", "/").endswith(_MODULES)


def words_of(place: FramePlace, whole: str) -> Words:
    """The words, with the networks that the module has.

    Parameters
    ----------
    whole
        What runs as plain Python; empty if the graph is cut.
    """
    what = f"{shown(place)} calls Lightning, which keeps its logging and its trainer out of graphs"
    names = networks_around(place.file, place.range.start.line) or [_EXAMPLE]
    code = "; ".join(f"self.{name} = torch.compile(self.{name})" for name in names)
    do = "Compile the network at the end of `__init__`, and leave the LightningModule without `torch.compile`"
    why = "In a compiled LightningModule each step goes through Lightning's code, too, and it changes with each step."
    return words(what, whole, why, (Option(do, code),))


def networks_around(file: str, line: int) -> list[str]:
    """The attributes that ``__init__`` of the class around a line sets and that another of its methods calls, in order."""
    tree = parse(file)
    classes = [
        node
        for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, ast.ClassDef) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    if not classes:
        return []
    methods = [node for node in max(classes, key=lambda node: node.lineno).body if isinstance(node, ast.FunctionDef)]
    made = [name for method in methods if method.name == "__init__" for name in _set_in(method)]
    called = {name for method in methods if method.name != "__init__" for name in _called_in(method)}
    return [name for name in dict.fromkeys(made) if name in called]


def _set_in(method: ast.FunctionDef) -> Iterator[str]:
    targets = (target for node in ast.walk(method) if isinstance(node, ast.Assign) for target in node.targets)
    return (name for target in targets if (name := _of_self(target)))


def _called_in(method: ast.FunctionDef) -> Iterator[str]:
    calls = (node.func for node in ast.walk(method) if isinstance(node, ast.Call))
    return (name for called in calls if (name := _of_self(called)))


def _of_self(node: ast.expr) -> str:
    is_own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    return node.attr if is_own and isinstance(node, ast.Attribute) else ""
