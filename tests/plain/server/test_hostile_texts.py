"""Edits of texts that no person writes: the process does not end, it takes no long time, and the plain edit stays."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time

import pytest
from irscope.fixing.edits import statements
from irscope.fixing.proposals import proposals
from irscope.fixing.source import Source, parse_expression
from irscope.fixing.texts import applied, edits_between
from irscope.protocol import Edit, Position, Range
from irscope_server.base.trees import tree_of
from made import finding

HEAD = "import torch\ndef f(x):\n    if (x.sum()  # a\n      .item()) > 0:\n        x = x + 1\n    return x\n"
WHERE = Range(Position(3, 8), Position(4, 13))
READ = {
    "form feeds": "\f\ny = 1\n\f\n",
    "comments": "#\n" * 2_000,
    "escapes": r"y = '\d'" + "\n",
    "not a character": "y = '\ufffd'\n",
    "a long line": f"y = [{'1, ' * 2_000}]\n",
    "a long text": f"y = '{'a' * 250_000}'\n",
    "comparisons": f"y = {'1 < ' * 2_000}1\n",
    "many numbers": f"y = [{'1, ' * 90_000}]\n",
    "many comments": "#\n" * 90_000,
}
NOT_READ = {
    "parentheses": "(" * 100_000 + ")" * 100_000,
    "open parentheses": "[" * 100_000,
    "calls": "y = " + "f(" * 150 + ")" * 150 + "\n",
    "signs": f"y = {'-' * 5_000}1\n",
    "many signs": f"y = {'-' * 100_000}1\n",
    "sums": f"y = {'1 + ' * 50_000}1\n",
    "attributes": f"y = x{'.a' * 2_500}\n",
    "branches": "if x: pass\n" + "elif x: pass\n" * 20_000,
    "a null byte": "y = 1\0\n",
    "a lone surrogate": "y = '\ud800'\n",
    "megabytes": "y = g(x)  # c\n" * 700_000,
    "a line of a megabyte": f"y = [{'1, ' * 340_000}]\n",
}


def look(name: str) -> dict[str, object]:
    """What is made of a text: whether it is read, how many fixes are proposed, and processor time."""
    text = HEAD + (READ.get(name) or NOT_READ[name])
    begun = time.process_time()
    try:
        Source(text).changed({}, [Edit(WHERE, "x.sum()")])
        is_read = True
    except ValueError:
        is_read = False
    found = proposals(finding("s.py", 3, 7, 21, code="GB0170"), text)
    tree_of(text)
    return {"read": is_read, "found": len(found), "seconds": time.process_time() - begun}


# This one takes as long as all others together; "a long line" is of its sort.
@pytest.mark.parametrize("left_out", [["many numbers"], pytest.param([], marks=pytest.mark.nightly)])
def test_texts_of_all_kinds(left_out: list[str]) -> None:
    """In a process of their own: a parser ends it where its stack is full."""
    names = [name for name in (*READ, *NOT_READ) if name not in left_out]
    code = f"import json, test_hostile_texts as t\nfor n in {names!r}: print(json.dumps(t.look(n)), flush=True)"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path])}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    results = dict(zip(names, map(json.loads, ran.stdout.split("\n")[:-1]), strict=False))
    assert list(results) == names, (names[len(results)], ran.returncode, ran.stderr[-500:])
    assert ran.stderr == ""
    for name, result in results.items():
        assert (result["read"], result["found"] > 0) == (name in READ, name in READ), (name, result)
        assert result["seconds"] < 20, (name, result)


CODE = {
    "deep": "(" * 3_000 + ")" * 3_000,
    "signs": "-" * 20_000 + "1",
    "two": "x)(y",
    "null": "\0",
    "statement": "pass",
    "surrogate": "'\ud800'",
}


@pytest.mark.parametrize("code", CODE.values(), ids=CODE)
def test_code_that_a_run_sends_is_not_trusted(code: str) -> None:
    with pytest.raises(ValueError, match=r"expression|Python|deeply"):
        parse_expression(code)
    source = Source(HEAD)
    with contextlib.suppress(ValueError):
        source.changed({}, [Edit(WHERE, code)])
    with contextlib.suppress(ValueError):
        source.changed({}, [statements(source, WHERE, code)])


def test_usual_code_is_read() -> None:
    nested = "y = " + "f(" * 40 + ")" * 40 + "\n" + "if x:\n    pass\n" + "elif x:\n    pass\n" * 40
    assert Source(nested).code(Source(nested).tree) == nested
    assert Source("def f():\n    return (yield 1)\n").nodes
    for code in ("a if b else c", "(yield x)", "(a := 1)", "f(\n    x,\n)", "a  # c"):
        parse_expression(code)


def test_many_lines_that_are_alike_are_compared_in_bounded_time() -> None:
    old = "import a\n" + "#\n" * 30_000 + "b = 2\n"
    new = old.replace("import a", "import b").replace("2", "4")
    begun = time.process_time()
    assert applied(old, edits_between(old, new)) == new
    assert time.process_time() - begun < 20
