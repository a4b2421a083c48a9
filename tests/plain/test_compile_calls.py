"""Where `torch.compile` is written for a function that is called, and how it gets `dynamic=True`."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from irscope.findings.recompiling.compile_calls import dynamic_fix
from irscope.protocol import Fix
from irscope.usercode.source import parse, range_of_node

FORMS = [
    ("s = torch.compile((f))\ns(X)", "s = torch.compile((f), dynamic=True)\ns(X)"),
    ("@torch.compile\ndef f(x): ...\nf(X)", "@torch.compile(dynamic=True)\ndef f(x): ...\nf(X)"),
    ("@torch.compile()\ndef f(x): ...\nf(X)", "@torch.compile(dynamic=True)\ndef f(x): ...\nf(X)"),
    ("step = torch.compile(f)\nstep(X)", "step = torch.compile(f, dynamic=True)\nstep(X)"),
    ("é = torch.compile(f)  # é\né(X)", "é = torch.compile(f, dynamic=True)  # é\né(X)"),
    ("s = torch.compile(f, mode='m',)\ns(X)", "s = torch.compile(f, mode='m', dynamic=True,)\ns(X)"),
    ("s = torch.compile(\n    f,  # (a)\n)\ns(X)", "s = torch.compile(\n    f, dynamic=True,  # (a)\n)\ns(X)"),
    ("s = torch.compile(f, dynamic=False)\ns(X)", "s = torch.compile(f, dynamic=True)\ns(X)"),
    ("t.step = torch.compile(f)\nt.step(X)", "t.step = torch.compile(f, dynamic=True)\nt.step(X)"),
    ("torch.compile(f)(X)", "torch.compile(f, dynamic=True)(X)"),
    ("s = torch._dynamo.optimize('eager')(f)\ns(X)", "s = torch._dynamo.optimize('eager', dynamic=True)(f)\ns(X)"),
    ("m = Model()\nm.compile()\nm(X)", "m = Model()\nm.compile(dynamic=True)\nm(X)"),
]
NOT_CERTAIN = [
    "f(X)",
    "s = torch.compile(f)\ns = torch.compile(g)\ns(X)",
    "s = torch.compile(f, **more)\ns(X)",
    "s = torch.compile(f, *more)\ns(X)",
    "s = make(torch.compile(f))\ns(X)",
    "t.step = torch.compile(f)\nu.step(X)",
]


def fix_of(path: Path, source: str) -> Fix | None:
    path.write_text(source, encoding="utf-8")
    tree = parse(str(path))
    assert tree is not None
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and "X" in map(ast.unparse, node.args)]
    return dynamic_fix((str(path), range_of_node(str(path), calls[0])), str(path), None)


@pytest.mark.parametrize(("source", "wanted"), FORMS)
def test_forms(tmp_path: Path, source: str, wanted: str) -> None:
    path = tmp_path / "script.py"
    fix = fix_of(path, source)
    assert fix is not None and fix.file == str(path)
    (edit,) = fix.edits
    lines = source.split("\n")
    start, end = edit.range.start, edit.range.end
    assert start.line == end.line
    line = lines[start.line - 1]
    lines[start.line - 1] = line[: start.column] + edit.text + line[end.column :]
    assert "\n".join(lines) == wanted
    ast.parse(wanted)


@pytest.mark.parametrize("source", NOT_CERTAIN)
def test_nothing_is_offered_where_it_is_not_certain(tmp_path: Path, source: str) -> None:
    assert fix_of(tmp_path / "script.py", source) is None


def test_the_decorator_of_the_function_itself(tmp_path: Path) -> None:
    """The call names the model; the method is what is compiled."""
    path = tmp_path / "script.py"
    path.write_text("class M:\n    @torch.compile(mode='m')\n    def forward(self, x): ...\n", encoding="utf-8")
    tree = parse(str(path))
    assert tree is not None
    method = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    fix = dynamic_fix(None, str(path), method)
    assert fix is not None and fix.edits[0].text == ", dynamic=True"
    assert dynamic_fix(None, str(tmp_path / "other.py"), method) is None
