"""Everything private of PyTorch, and every look at Python's stack, is in `irscope.internals`."""

from __future__ import annotations

import ast
import importlib.metadata
from collections.abc import Iterator
from pathlib import Path

import pytest
from private_names import missing_in
from sources import COMPILER, ROOT, Nodes, found_by, name_of, rule

INTERNALS = COMPILER / "irscope" / "internals"
MAY_IMPORT = ("internals", "protocol", "vocabulary", "usercode")
STACK = ("_getframe", "currentframe", "f_locals")
"""Names by which code looks at frames of functions that it was not called with."""


OWN_INTERPRETER = {
    "compiler/irscope/pipeline_captures/inductor/triton_passes.py",
    "compiler/irscope/values/kernel/interpreter.py",
    "compiler/irscope/values/kernel/given.py",
    "compiler/irscope/values/kernel/process.py",
    "compiler/irscope/values/kernel/recording.py",
}
"""Scripts for an interpreter that has another compiler, started by its path: they do not have irscope's modules."""


@rule
def looks(nodes: Nodes) -> Iterator[int]:
    """Lines that look at the stack, and that make hooks."""
    yield from (node.lineno for node in nodes.of(ast.Attribute) if node.attr in STACK)
    yield from (node.lineno for node in nodes.of(ast.Call) if name_of(node.func) in ("Hook", "FrameLook"))


def is_private(name: str) -> bool:
    """Whether a dotted name leads into a package's private parts: ``torch._dynamo.config``, but not ``torch.__version__``."""
    first, *rest = name.split(".")
    return first in ("torch", "triton", "sympy") and any(
        part.startswith("_") and not (part.startswith("__") and part.endswith("__")) for part in rest
    )


READERS = ("get", "import_module", "__import__", "getattr")


def dotted(node: ast.AST) -> str:
    """The name that an expression reads: attributes, and modules taken from ``sys.modules``; else nothing."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return "torch" if node.attr == "_torch" else f"{dotted(node.value)}.{node.attr}"  # self._torch
    if isinstance(node, ast.Subscript) and name_of(node.value) == "modules":
        return str(getattr(node.slice, "value", "")) if ast.unparse(node.value) == "sys.modules" else ""
    if isinstance(node, ast.Call) and node.args and name_of(node.func) in READERS:
        function = ast.unparse(node.func)
        if function in ("sys.modules.get", "import_module", "importlib.import_module", "__import__"):
            return str(getattr(node.args[0], "value", ""))
        if function == "getattr":
            return f"{dotted(node.args[0])}.{getattr(node.args[1], 'value', '')}"
    return ""


@rule
def private_names(nodes: Nodes) -> Iterator[int]:
    """Lines that read or import something private of PyTorch, of Triton or of sympy."""
    for kind in (ast.Name, ast.Attribute, ast.Subscript, ast.Call):
        yield from (node.lineno for node in nodes.of(kind) if is_private(dotted(node)))
    for node in nodes.of(ast.Import):
        yield from (node.lineno for alias in node.names if is_private(alias.name))
    for origin in nodes.of(ast.ImportFrom):
        if origin.level == 0:
            yield from (origin.lineno for alias in origin.names if is_private(f"{origin.module}.{alias.name}"))


@rule
def rooms_imported(nodes: Nodes) -> Iterator[tuple[int, str]]:
    """The rooms of irscope that a module imports, late imports too."""
    for node in nodes.of(ast.ImportFrom):
        if (node.module or "").partition(".")[0] == "irscope":
            inside = (node.module or "").split(".")[1:2]
            yield from ((node.lineno, room) for room in (inside or [alias.name for alias in node.names]))
    for whole in nodes.of(ast.Import):
        names = (alias.name.split(".") for alias in whole.names)
        yield from ((whole.lineno, name[1]) for name in names if name[0] == "irscope" and len(name) > 1)


def test_hooks_and_looks_at_frames_are_in_internals() -> None:
    found = []
    made = 0
    for path, here in found_by(looks).items():
        if path.parent == INTERNALS:
            made += len(here)
        elif path.relative_to(ROOT).as_posix() not in OWN_INTERPRETER:
            found += [f"{path.relative_to(ROOT)}:{line}" for line in here]
    assert found == []
    assert made > 40


def test_private_names_of_pytorch_are_read_in_internals() -> None:
    found = []
    inside = 0
    for path, lines in found_by(private_names).items():
        here = {*lines}
        if path.parent == INTERNALS or path.relative_to(ROOT).as_posix() in OWN_INTERPRETER:
            inside += len(here)
        else:
            found += [f"{path.relative_to(ROOT)}:{line}" for line in sorted(here)]
    assert found == []
    assert inside > 0


def test_frames_are_walked_in_one_way() -> None:
    walks = [path.name for path in INTERNALS.glob("*.py") if "_getframe" in path.read_text(encoding="utf-8")]
    assert walks == ["frames.py"]


def test_internals_know_little_of_irscope() -> None:
    found = []
    for path in INTERNALS.glob("*.py"):
        for line, room in found_by(rooms_imported)[path]:
            if room not in MAY_IMPORT:
                found.append(f"{path.relative_to(ROOT)}:{line} imports irscope.{room}")
    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        "import sys\ndef f():\n    return sys._getframe(1)",
        "import inspect\nx = inspect.currentframe()",
        "def f(frame):\n    return frame.f_locals",
        "x = Hook('what', 'json', '2.13', f)",
        "x = hooks.Hook('what', 'json', '2.13', f)",
    ],
)
def test_the_walk_sees_them(source: str) -> None:
    assert len([*looks(Nodes(source))]) == 1


@pytest.mark.parametrize(
    "source",
    [
        'config = sys.modules["torch._inductor.config"]',
        'guards = sys.modules.get("torch._guards")',
        'importlib.import_module("torch._dynamo")',
        "import torch._inductor.config as config",
        "def f():\n    from torch.utils._python_dispatch import TorchDispatchMode",
        "from torch import _dynamo",
        "torch._dynamo.graph_break()",
        'getattr(torch._C, "x")',
        'getattr(torch, "_C")',
        'sys.modules["torch"]._C',
        "self._torch._C",
        'getattr(sys.modules.get("sympy.core._print_helpers"), "Printable", None)',
    ],
)
def test_the_walk_sees_private_names(source: str) -> None:
    assert len({*private_names(Nodes(source))}) == 1


@pytest.mark.parametrize(
    "source",
    [
        'sys.modules["torch"].fx',
        "torch.__version__",
        "from torch.fx import GraphModule",
        'x = "torch._dynamo"',
        "self._torch.ones(1)",
    ],
)
def test_the_walk_lets_public_names_be(source: str) -> None:
    assert [*private_names(Nodes(source))] == []


def test_the_walk_sees_imports_in_functions() -> None:
    source = "def f():\n    from irscope.findings import book\nimport irscope.runner.main\nfrom irscope import store\n"
    assert {room for _, room in rooms_imported(Nodes(source))} == {"findings", "runner", "store"}


NEWER = {"torch._precompile"}
"""Modules that the torch of the tests does not have yet: their hooks wait for them."""


@pytest.mark.nightly
def test_each_declared_name_is_in_the_torch_of_the_tests() -> None:
    missing, count = missing_in(Path(importlib.metadata.distribution("torch").locate_file("")))  # type: ignore[arg-type]
    assert [name for name in missing if name.module not in NEWER] == []
    assert count > 200


def test_a_name_that_is_gone_is_named(tmp_path: Path) -> None:
    installed = Path(importlib.metadata.distribution("torch").locate_file("torch"))  # type: ignore[arg-type]
    (tmp_path / "torch" / "_inductor").mkdir(parents=True)
    text = (installed / "_inductor" / "codecache.py").read_text()
    kept = tmp_path / "torch" / "_inductor" / "codecache.py"
    for gone, expected in (("", 0), ("def _lookup_graph(", 1)):
        kept.write_text(text.replace(gone, "def _looked_up(") if gone else text)
        missing, _ = missing_in(tmp_path)
        assert sum(name.chain == ("FxGraphCache", "_lookup_graph") for name in missing) == expected
