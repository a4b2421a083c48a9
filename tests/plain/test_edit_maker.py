"""The edits that change a text: formatting that is hard to keep, for each kind of change."""

from __future__ import annotations

import ast

import pytest
from irscope.fixing import top_level
from irscope.fixing.edits import argument, reindented, statements, with_comments
from irscope.fixing.source import Source
from irscope.fixing.texts import applied, edits_between
from irscope.protocol import Position, Range

E, S, R, A = "a node", "statements", "a node that goes", "an argument"

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
    "decorator": (R, "@a  # one\n# two\n@⟦b(  # three\n    1)⟧\n@c\ndef f(x): pass\n", "", "# three\n@a  # one\n# two\n@c\ndef f(x): pass\n"),
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


def made(marked: str, kind: str, code: str) -> str:
    """A text after a change of what is between the brackets."""
    before, _, rest = marked.partition("⟦")
    inside, _, after = rest.partition("⟧")
    source = Source(before + inside + after)
    where = Range(_position(before), _position(before + inside))
    if kind is S:
        return source.changed({}, [statements(source, where, code)])
    same = [node for node in source.nodes if isinstance(node, (ast.expr, ast.stmt)) and source.range(node) == where]
    if kind is A:
        name, _, value = code.partition("=")
        (call,) = (node for node in same if isinstance(node, ast.expr))
        return source.changed({}, [argument(source, call, name, value)])
    return source.changed({same[0]: code or None})


@pytest.mark.parametrize("case", CASES)
def test_a_change_keeps_what_is_around_it(case: str) -> None:
    kind, marked, code, expected = CASES[case]
    assert made(marked, kind, code) == expected


@pytest.mark.parametrize(
    "case", [case for case in CASES if CASES[case][0] is S and case not in ("several", "kept comment")]
)
def test_statements_change_as_their_ranges_do(case: str) -> None:
    _, marked, code, expected = CASES[case]
    assert made(marked, E, code) == expected


@pytest.mark.parametrize(
    ("marked", "kind", "code"),
    [
        ("def f(x):\n    if x: ⟦log(x)⟧\n", S, "if a:\n    b()"),
        ("g = ⟦torch.compile(*f)⟧\n", A, "dynamic=True"),
        ("g = ⟦torch.compile(f, **o)⟧\n", A, "dynamic=True"),
    ],
)
def test_what_cannot_be_made_is_said(marked: str, kind: str, code: str) -> None:
    with pytest.raises(ValueError, match=r"\w+"):
        made(marked, kind, code)


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
    ("between", "head", "expected"),
    [
        ("", True, "import os\nimport torch\nimport math\n\n_SCALE = 2\n\n\n# about f\n@torch"),
        ("\nSIZE = 4\n\n", True, "import torch\nimport math\n\nSIZE = 4\n_SCALE = 2\n\n\n# about f\n@torch"),
        ("\n", False, "# about f\n\nimport math\n\n_SCALE = 2\n\n\n@torch"),
    ],
)
def test_lines_at_the_top(between: str, head: bool, expected: str) -> None:
    text = SCRIPT.format(between=between)
    text = text if head else text.removeprefix("# Copyright\n\nimport os\nimport torch\n").lstrip("\n")
    source = Source(text)
    top = source.tree.body[-1]
    changes = [top_level.import_change(source, "import math", top), top_level.change_above(source, "_SCALE = 2", top)]
    assert expected in applied(text, with_comments(source, changes))


CODE = """\
def f(x):
    # why
    text = '''a
    b'''
    if x:
        return g(
            1,
        )

    # at the end
    return text"""


@pytest.mark.parametrize(("indent", "unit"), [("", "    "), ("    ", "  "), ("\t", "\t")])
def test_blocks_have_the_indentation_of_the_text(indent: str, unit: str) -> None:
    code = reindented(CODE, indent, unit)
    assert ast.dump(ast.parse("if 1:\n" + code if indent else code)).replace("If(test=Constant(value=1), body=[", "")[
        :40
    ]
    assert f"\n{indent}{unit}if x:\n{indent}{unit * 2}return g(\n" in code
    assert "\n    b'''\n" in code, "a text stays as it is"
    assert f"\n{indent}{unit}# at the end\n{indent}{unit}return text" in code


def test_the_code_of_a_node_is_without_comments_that_go_above_its_statement() -> None:
    source = Source("if 1:\n    y = g(f(  # why\n        x), x)\n")
    call, inner = source.all(ast.Call)
    assert source.code(call, {inner: "h(x)"}) == "g(h(x), x)"
    assert source.changed({inner: "h(x)"}) == "if 1:\n    # why\n    y = g(h(x), x)\n"


def test_the_code_of_a_block_is_each_statement_once() -> None:
    """With its comments and the empty lines between; statements on one line have lines of their own."""
    source = Source(
        "def f(x):\n    # one\n    a = 1; b = (2,\n      3)  # two\n\n    # three\n    c = g(a)  # four\n    return c\n"
    )
    (function,), (call,) = source.all(ast.FunctionDef), source.all(ast.Call)
    code = "# one\na = 1\nb = (2,\n      3)  # two\n\n# three\nc = h(a)  # four\nreturn c"
    assert source.block_code(function.body, {call: "h(a)"}) == code
    assert source.block_code(function.body[1:2]) == "b = (2,\n      3)  # two"


def test_edits_are_the_lines_that_differ() -> None:
    old, new = "a = 1\nb = f(x.item())\nc = 3\n", "a = 1\nb = f(x)\nc = 3\n"
    (edit,) = edits_between(old, new)
    assert (edit.text, edit.range) == ("b = f(x)\n", Range(Position(2, 0), Position(3, 0)))
    for one, other in ((old, new), (new, old), ("", "a\n"), ("a", ""), ("a\nb", "a\nc\nb\n"), ("x\n" * 3, "x\n")):
        assert applied(one, edits_between(one, other)) == other
