"""Graph breaks in Lightning's own code where a whole LightningModule is compiled: its logging runs outside of graphs."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator, Sequence

from irscope.events.stack import FramePlace
from irscope.findings.deliberate import shown, words
from irscope.fixing.advice.model import Option, Words
from irscope.fixing.compile_calls import compiling
from irscope.fixing.source import source_of_file
from irscope.protocol import Edit
from irscope.usercode.source import parse

_MODULES = ("/lightning/pytorch/core/module.py", "/pytorch_lightning/core/module.py")
_EXAMPLE = "net"


def is_in_module(beneath: Sequence[FramePlace]) -> bool:
    """Whether the user's code calls a method of LightningModule, such as ``self.log``, that breaks the graph.

    Args:
        beneath: The frames below the user's place, outermost first.
    """
    return bool(beneath) and beneath[0].file.replace("\\", "/").endswith(_MODULES)


def words_of(place: FramePlace, whole: str) -> Words:
    """The words, with the networks that the module has.

    Args:
        whole: What runs as plain Python; empty if the graph is cut.
    """
    what = f"{shown(place)} calls Lightning, which keeps its logging and its trainer out of graphs"
    found = networks_around(place.file, place.range.start.line)
    names = found or [_EXAMPLE]
    code = "; ".join(f"self.{name} = torch.compile(self.{name})" for name in names)
    do = "Compile the network at the end of `__init__`, and leave the LightningModule without `torch.compile`"
    why = "In a compiled LightningModule each step goes through Lightning's code, too, and it changes with each step."
    return words(what, whole, why, (Option(do, code, "", _edits(place, found)),))


def _edits(place: FramePlace, names: list[str]) -> tuple[Edit, ...]:
    """What compiles the networks in place of the module; none if the file does not compile it in one call."""
    source = source_of_file(place.file)
    methods = _methods_around(place.file, place.range.start.line)
    if source is None or not names or len(calls := compiling(source)) != 1:
        return ()
    line = next(method.body[-1].lineno for method in methods if method.name == "__init__")
    last = next((node for node in source.all(ast.stmt) if node.lineno == line), None)
    match calls[0]:
        case ast.Call(args=[ast.expr() as module]) as call if last is not None:
            torch = source.module_name("torch") or "torch"
            text = "\n".join(f"self.{name} = {torch}.compile(self.{name})" for name in names)
            with contextlib.suppress(ValueError):
                return source.edits({call: source.code(module)}, [source.after(last, text)])
    return ()


def networks_around(file: str, line: int) -> list[str]:
    """The attributes that ``__init__`` of the class around a line sets and that another of its methods calls, in order."""
    methods = _methods_around(file, line)
    made = [name for method in methods if method.name == "__init__" for name in _set_in(method)]
    called = {name for method in methods if method.name != "__init__" for name in _called_in(method)}
    return [name for name in dict.fromkeys(made) if name in called]


def _methods_around(file: str, line: int) -> list[ast.FunctionDef]:
    tree = parse(file)
    classes = [
        node
        for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, ast.ClassDef) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    if not classes:
        return []
    return [node for node in max(classes, key=lambda node: node.lineno).body if isinstance(node, ast.FunctionDef)]


def _set_in(method: ast.FunctionDef) -> Iterator[str]:
    targets = (target for node in ast.walk(method) if isinstance(node, ast.Assign) for target in node.targets)
    return (name for target in targets if (name := _of_self(target)))


def _called_in(method: ast.FunctionDef) -> Iterator[str]:
    calls = (node.func for node in ast.walk(method) if isinstance(node, ast.Call))
    return (name for called in calls if (name := _of_self(called)))


def _of_self(node: ast.expr) -> str:
    is_own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    return node.attr if is_own and isinstance(node, ast.Attribute) else ""
