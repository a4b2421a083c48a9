"""The changes that findings carry, made on a tree: formatting that is hard to keep, for each kind of change."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import irscope
import irscope_server
import pytest
from irscope.cli import own_edits
from irscope.cli.own_edits import with_own_edits
from irscope.driver.fixing.texts import applied, least_edits
from irscope.findings.advice import top_level
from irscope.findings.plain_edits import edits_of
from irscope.protocol import ChangeKind, Finding, Fix, Position, Range, SyntaxChange
from irscope.usercode.source import parse
from irscope_server.fixing.own import edited
from irscope_server.fixing.proposals import proposals
from made import finding

E, S, R, A = ChangeKind.EXPRESSION, ChangeKind.STATEMENTS, ChangeKind.REMOVAL, ChangeKind.ARGUMENT

CASES = {
    # an expression
    "semicolons": (E, "def f(x):\n    ä = 'ü'; s = ⟦x.sum().item()⟧ ; b = 1  # c\n", "x.sum()", "def f(x):\n    ä = 'ü'; s = x.sum() ; b = 1  # c\n"),
    "line continuation": (E, "def f(x):\n\ty = \\\n\t\t⟦x.mean().item()⟧ * \\\n\t\t2  # c\n", "x.mean()", "def f(x):\n\ty = \\\n\t\tx.mean() * \\\n\t\t2  # c\n"),
    "comment inside": (E, "def f(x):\n    # above\n    return g(⟦x[x  # values\n           > 0].sum()⟧  # positive\n    )\n", "h(x)", "def f(x):\n    # above\n    # values\n    return g(h(x)  # positive\n    )\n"),
    "parentheses": (E, "def f(x):\n    return (  # a\n        ⟦x.item()⟧  # b\n    )\n", "x.detach()", "def f(x):\n    return (  # a\n        x.detach()  # b\n    )\n"),
    "nested f-string": (E, "def f(x):\n    return f\"{'ä' + f'{⟦x.item()⟧!r:>{10}}'}\"  # c\n", "x", "def f(x):\n    return f\"{'ä' + f'{x!r:>{10}}'}\"  # c\n"),
    "decorated": (E, "@g(\n    a=1,  # one\n    b=⟦h(  # two\n        2)⟧)\ndef f(x): pass\n", "3", "# two\n@g(\n    a=1,  # one\n    b=3)\ndef f(x): pass\n"),
    "a call that goes": (E, "def f(x):\n    ⟦print(x)⟧; return x\n", "pass", "def f(x):\n    pass; return x\n"),
    # statements
    "branch": (S, "def f(x):\n    # above\n    ⟦if x.sum() > 0:  # why\n        x = x + 1⟧  # so\n    return x\n", "x = g(x)", "def f(x):\n    # above\n    # why\n    x = g(x)  # so\n    return x\n"),
    "tabs": (S, "def f(x):\n\tfor i in x:\n\t\t⟦log(x)⟧  # c\n", "if not g():\n    log(x)", "def f(x):\n\tfor i in x:\n\t\tif not g():\n\t\t\tlog(x)  # c\n"),
    "two spaces": (S, "def f(x):\n  ⟦log(x)⟧\n  return x\n", "if not g():\n    log(x)", "def f(x):\n  if not g():\n    log(x)\n  return x\n"),
    "elif": (S, "def f(x, y):\n    if y:\n        pass\n    # above\n    ⟦elif x > 0:  # why\n        x = 1⟧\n    return x\n", "x = g(x)", "def f(x, y):\n    if y:\n        pass\n    # above\n    # why\n    else:\n        x = g(x)\n    return x\n"),
    "among others": (S, "def f(x):\n    a = 1; ⟦log(x)⟧; return a  # c\n", "b = 2\nc = 3", "def f(x):\n    a = 1; b = 2; c = 3; return a  # c\n"),
    "spaces around a semicolon": (S, "def f(x):\n    a = 1; ⟦log(x)⟧ ;  return a\n", "b = 2\nc = 3", "def f(x):\n    a = 1; b = 2; c = 3 ;  return a\n"),
    "one-line body": (S, "def f(x):\n    if x: ⟦log(x)⟧  # c\n    return x\n", "pass", "def f(x):\n    if x: pass  # c\n    return x\n"),
    "several": (S, "def f(x):\n    ⟦if x:  # one\n        return 1\n    # two\n    return 2⟧  # three\n", "return g(x)", "def f(x):\n    # one\n    # two\n    return g(x)  # three\n"),
    "kept comment": (S, "def f(x):\n    ⟦with g():\n        a = 1  # one⟧\n    return a\n", "a = 1  # one", "def f(x):\n    a = 1  # one\n    return a\n"),
    # what goes
    "decorator": (R, "@a  # one\n# two\n@⟦b(  # three\n    1)⟧\n@c\ndef f(x): pass\n", "", "# two\n# three\n@a  # one\n@c\ndef f(x): pass\n"),
    "statement": (R, "def f(x):\n    # above\n    ⟦if x:  # why\n        return 1⟧\n    return 2\n", "", "def f(x):\n    # above\n    # why\n    return 2\n"),
    # an argument
    "decorator that is no call": (A, "@⟦torch.compile⟧  # c\ndef f(x): pass\n", "dynamic=True", "@torch.compile(dynamic=True)  # c\ndef f(x): pass\n"),
    "trailing comma": (A, "g = ⟦torch.compile(\n    f,  # c\n)⟧\n", "dynamic=True", "g = torch.compile(\n    f, dynamic=True,  # c\n)\n"),
    "given": (A, "g = ⟦torch.compile(f, dynamic = False)⟧\n", "dynamic=True", "g = torch.compile(f, dynamic = True)\n"),
    "parentheses of its own": (A, "g = ⟦torch.compile((f))⟧\n", "dynamic=True", "g = torch.compile((f), dynamic=True)\n"),
    "empty call": (A, "@⟦torch.compile()⟧\ndef f(x): pass\n", "dynamic=True", "@torch.compile(dynamic=True)\ndef f(x): pass\n"),
}  # fmt: skip


def _position(before: str) -> Position:
    return Position(before.count("\n") + 1, len(before) - before.rfind("\n") - 1)


def _fix(path: Path, marked: str, kind: ChangeKind, code: str) -> tuple[str, Fix]:
    before, _, rest = marked.partition("⟦")
    inside, _, after = rest.partition("⟧")
    text = before + inside + after
    path.write_text(text, encoding="utf-8")
    changes = (SyntaxChange(kind, Range(_position(before), _position(before + inside)), code),)
    return text, Fix("Do it", "", edits_of(str(path), changes), "", changes)


@pytest.mark.parametrize("case", CASES)
def test_a_change_keeps_what_is_around_it(case: str, tmp_path: Path) -> None:
    kind, marked, code, expected = CASES[case]
    text, fix = _fix(tmp_path / "script.py", marked, kind, code)
    made = edited(text, fix)
    assert applied(text, made.edits) == expected


SCRIPT = """\
# Copyright

import os
import torch
{between}
# about f
@torch.compile
def f(x):
    return x  # c
"""


@pytest.mark.parametrize(
    "between", ["", "\n", "\nSIZE = 4\n\n", "torch._dynamo.config.capture_scalar_outputs = True\n\n"]
)
@pytest.mark.parametrize("head", [True, False])
def test_lines_at_the_top_keep_their_place(between: str, head: bool, tmp_path: Path) -> None:
    """The tree gives what the plain edits do: those know where lines go."""
    path = tmp_path / "script.py"
    text = SCRIPT.format(between=between)
    text = text if head else text.removeprefix("# Copyright\n\nimport os\nimport torch\n").lstrip("\n")
    path.write_text(text, encoding="utf-8")
    tree = parse(str(path))
    assert tree is not None
    top = tree.body[-1]
    line = text.split("\n").index("    return x  # c") + 1
    inside = SyntaxChange(E, Range(Position(line, 11), Position(line, 12)), "g(x)")
    for change in (
        top_level.import_change(str(path), "import math", top),
        top_level.setting_change(str(path), "torch._dynamo.config.a = 1", ("torch",), top),
        top_level.change_above(str(path), "_SCALE = 2", top),
        top_level.change_above(str(path), "def g(x):\n    return x", top),
    ):
        both = (change, inside)
        wrong = Fix("Do it", "", (), "", both)  # so that the edits cannot be those that it has
        expected = applied(text, edits_of(str(path), both))
        assert applied(text, edited(text, wrong).edits) == expected
        assert "g(x)" in expected


@pytest.mark.parametrize("lines", [(2, 2), (3, 3), (2, 5), (5, 2)])
def test_several_lines_at_the_top_keep_their_order(lines: tuple[int, int], tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    text = "import torch\n\nA = 1\n\n\ndef f(x):\n    return x\n"
    path.write_text(text, encoding="utf-8")
    codes = zip(lines, ("import math\n", "_B = math.pi\n"), strict=True)
    changes = tuple(SyntaxChange(ChangeKind.LINES, Range(Position(n, 0), Position(n, 0)), code) for n, code in codes)
    inside = SyntaxChange(E, Range(Position(7, 11), Position(7, 12)), "g(x)")
    expected = applied(text, edits_of(str(path), (*changes, inside)))
    wrong = Fix("Do it", "", (), "", (*changes, inside))  # so that the edits cannot be those that it has
    assert applied(text, edited(text, wrong).edits) == expected


def test_edits_of_a_run_that_was_stored_before_findings_named_changes(tmp_path: Path) -> None:
    marked = "def f(x):\n    return g(⟦x[x  # values\n     > 0]⟧)\n"
    text, fix = _fix(tmp_path / "script.py", marked, E, "h(x)")
    old = dataclasses.replace(fix, changes=())
    assert applied(text, edited(text, old).edits) == "def f(x):\n    # values\n    return g(h(x))\n"


def test_a_call_that_is_a_statement_becomes_another(tmp_path: Path) -> None:
    marked = "def f(x):\n    ⟦g(x,  # why\n      1)⟧\n"
    text, fix = _fix(tmp_path / "script.py", marked, E, "pass")
    assert applied(text, edited(text, fix).edits) == "def f(x):\n    # why\n    pass\n"


def test_what_does_not_fit_stays_as_it_is(tmp_path: Path) -> None:
    text, fix = _fix(tmp_path / "script.py", *CASES_OF_TEXT)
    for changes in (
        (SyntaxChange(E, Range(Position(1, 1), Position(2, 3)), "y"),),
        (SyntaxChange(E, Range(Position(70, 1), Position(70, 3)), "y"),),
        (SyntaxChange(E, fix.changes[0].range, "y ="),),
        (SyntaxChange(ChangeKind.LINES, Range(Position(0, 0), Position(0, 0)), "y = 1\n"),),
        (SyntaxChange(ChangeKind.LINES, Range(Position(9, 0), Position(9, 0)), "y = 1\n"),),
        (SyntaxChange(ChangeKind.LINES, Range(Position(1, 4), Position(1, 4)), "y = 1\n"),),
        (SyntaxChange(R, Range(Position(2, 4), Position(2, 12)), ""),),  # nothing follows it
    ):
        other = dataclasses.replace(fix, changes=changes)
        assert edited(text, other) is other
    assert edited("def f(:", fix) is fix


CASES_OF_TEXT = ("def f(x):\n    return ⟦x.item()⟧\n", E, "x")


def test_a_change_of_which_nothing_gets_better_is_the_plain_one(tmp_path: Path) -> None:
    text, fix = _fix(tmp_path / "script.py", *CASES_OF_TEXT)
    assert edited(text, fix) is fix


def test_a_finding_of_its_own_is_proposed_as_the_tree_has_it(tmp_path: Path) -> None:
    text, fix = _fix(tmp_path / "script.py", "def f(x):\n    return g(⟦x[x  # values\n     > 0]⟧)\n", E, "h(x)")
    found: Finding = finding(str(tmp_path / "script.py"), 2, 13, 14, code="GB0000", fixes=(fix,))
    first = proposals(found, text)[0]
    assert first.title == fix.title
    assert applied(text, first.edits) == "def f(x):\n    # values\n    return g(h(x))\n"


def test_the_command_line_has_the_edits_of_the_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "script.py"
    text, fix = _fix(path, "def f(x):\n    return g(⟦x[x  # values\n     > 0]⟧)\n", E, "h(x)")
    found = finding(str(path), 2, 13, 14, code="GB0000", fixes=(fix,))
    (made,) = with_own_edits([found])
    assert applied(text, made.fixes[0].edits) == "def f(x):\n    # values\n    return g(h(x))\n"
    assert (made.cause, made.fixes[0].changes) == (found.cause, fix.changes)
    monkeypatch.setattr(own_edits, "is_missing", lambda: True)
    assert with_own_edits([found]) == (found,)


def test_libcst_is_found_where_the_server_has_no_packages() -> None:
    """As VS Code starts it: without the interpreter's packages, of which no other may get in."""
    code = (
        f"import sys; sys.path[:0] = {[str(Path(irscope.__path__[0]).parent), str(Path(irscope_server.__path__[0]).parent)]!r}\n"
        "from importlib.util import find_spec\n"
        "from irscope.driver.fixing.needs import is_missing\n"
        "print(find_spec('libcst'), is_missing(), find_spec('pytest'))\n"
        "from irscope_server.fixing.proposals import proposals"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, timeout=100)
    assert (done.stdout, done.stderr) == ("None False None\n", "")


def test_edits_are_as_few_characters_as_differ() -> None:
    old, new = "a = 1\nb = f(x.item())\nc = 3\n", "a = 1\nb = f(x)\nc = 3\n"
    (edit,) = least_edits(old, new)
    assert (edit.text, edit.range) == ("", Range(Position(2, 7), Position(2, 14)))
    for one, other in ((old, new), (new, old), ("", "a\n"), ("a", ""), ("a\nb", "a\nc\nb\n"), ("x\n" * 3, "x\n")):
        assert applied(one, least_edits(one, other)) == other
