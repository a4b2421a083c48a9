"""Which function a compile's name and line mean."""

from __future__ import annotations

import pytest
from irscope_server.app.requests import statement_around
from irscope_server.base.functions import function_of, outline_of, uses_compile

TEXT = """\
import torch, functools

class Block:
    @torch.no_grad()
    @torch.compile(dynamic=True)
    def forward(self, x):
        def inner(y):
            return y
        return inner(x)

def plain(x):
    return x

g = torch.compile(plain)
h = torch.compile(lambda x: x + 1)

class Other:
    def forward(self, x):
        return x

@functools.partial(torch.compile, fullgraph=True)
def last(x):
    return x
"""


@pytest.mark.parametrize(
    ("name", "line", "title"),
    [
        ("forward", 4, "Block.forward"),  # co_firstlineno is the first decorator's
        ("forward", 6, "Block.forward"),
        ("forward", 18, "Other.forward"),
        ("plain", 11, "plain"),
        ("plain", 999, "plain"),  # the only one of that name
        ("<lambda>", 15, "<lambda>"),
        ("torch_dynamo_resume_in_forward_at_9", 4, "Block.forward"),
        ("torch_dynamo_resume_in_forward_at_19", 19, "Other.forward"),
        ("torch_dynamo_resume_in_inner_at_8", 7, "Block.forward.inner"),
        ("torch_dynamo_resume_in_torch_dynamo_resume_in_forward_at_8_at_9", 4, "Block.forward"),
        ("torch_dynamo_resume_in__lambda__at_15", 15, "<lambda>"),
        ("nowhere", 12, None),
        ("forward", 999, None),  # two of that name, and no line to tell them apart
    ],
)
def test_a_compile_belongs_to_a_function(name: str, line: int, title: str | None) -> None:
    outline = outline_of(TEXT)
    assert outline
    function = function_of(outline, name, line)
    assert (function.title if function else None) == title


def test_the_text_says_what_is_compiled() -> None:
    outline = outline_of(TEXT)
    assert outline
    assert [function.title for function in outline.marked()] == ["Block.forward", "plain", "last"]
    assert outline.compile_calls == (14, 15)
    other = outline_of("import re\nre.compile('x')\n")
    assert other and not other.compile_calls


def test_a_syntax_error_has_no_outline() -> None:
    assert outline_of("def f(:\n") is None
    assert outline_of("x = '\\d'\n\0") is None


@pytest.mark.parametrize(
    ("text", "uses"),
    [
        ("import torch\n@torch.compile\ndef f(x): ...", True),
        ("import torch as t\nt.compile(f)", True),
        ("from torch import compile", True),
        ("import torch\nmodel.compile()", True),
        ("import torch\nprint(1)", False),
        ("import re\nre.compile('x')", False),
    ],
)
def test_which_scripts_are_worth_a_run(text: str, uses: bool) -> None:
    assert uses_compile(text) is uses


def test_an_empty_line_of_a_block_belongs_to_no_statement() -> None:
    text = "def f(x):\n    y = g(\n        x,\n    )\n\n    for i in x:\n        y += i\n\n    return y\n"
    around = {line: statement_around(text, line) for line in (0, 2, 4, 5, 6, 7, 8)}
    assert around == {0: (0, 8), 2: (1, 3), 4: (4, 4), 5: (5, 6), 6: (6, 6), 7: (7, 7), 8: (8, 8)}
