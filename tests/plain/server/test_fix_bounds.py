"""Decisions on numbers of tensors as checks of the graph, and functions that are left to Python."""

from __future__ import annotations

import pytest
from irscope.driver.fixing.texts import applied
from irscope_server.fixing.proposals import proposals
from test_fix_families import changed, found

TITLE = "Let the number be a symbol of the graph, and check its bounds there"
PLAIN = "Leave the function to Python, and compile what it calls"
BODY = "import torch\n\n\ndef f(x, lengths):\n    n = int(lengths.max())\n{}    return x[:n]\n"
SETTING = "torch._dynamo.config.capture_scalar_outputs = True\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            '    # as the model wants\n    if n > 8 or n == 0:\n        raise ValueError("too long")\n',
            '    # as the model wants\n    torch._check(n <= 8, lambda: "too long")\n    torch._check(n != 0, lambda: "too long")\n',
        ),
        ('    if n >= 8:\n        raise ValueError(f"{n} is too long")\n', "    torch._check(n < 8)\n"),
        ("    if n > 8:\n        n = 8\n", "    n = min(n, 8)\n"),
        (
            "    if n < 1:\n        n = 1\n    if n > 8:\n        raise E\n",
            "    n = max(n, 1)\n    torch._check(n <= 8)\n",
        ),
        ("    if n > 8 and n < 10:\n        raise E\n", None),  # the opposite is a decision, too
        ("    if n > 8:\n        n = 9\n", None),
        ("    if n > 8:\n        return x\n", None),
        ("    if n > 8:\n        raise E\n    if n == 3:\n        x = x + 1\n", None),  # the next break
        ("    if x.dim() > 2:\n        raise E\n", None),  # not about the number
        ("    if n > 8:\n        raise E\n    else:\n        x = x + 1\n", None),
    ],
)
def test_decisions_on_a_number(before: str, after: str | None) -> None:
    made = changed(BODY.format(before), "int(lengths.max())", "GB0124").get(TITLE)
    if after is None:
        assert made is None
    else:
        head = f"import torch\nimport torch._dynamo\n\n{SETTING}"
        assert made == BODY.format(after).replace("import torch\n", head)


def test_what_is_set_already_is_not_set_again() -> None:
    before = BODY.format("    if n > 8:\n        raise E\n").replace("import torch\n", f"import torch\n{SETTING}")
    made = changed(before, "n > 8", "data-dependent-guard")[TITLE]
    assert made == before.replace("if n > 8:\n        raise E", "torch._check(n <= 8)")


@pytest.mark.parametrize(
    ("decorator", "message", "offered"),
    [
        ("", "the whole function runs as plain Python.", True),
        ("", "the graph is cut here.", False),
        ("@torch.no_grad()\n", "the whole function runs as plain Python.", False),
    ],
)
def test_a_function_that_is_plain_python_already(decorator: str, message: str, offered: bool) -> None:
    text = f"import torch\n\n\n{decorator}def f(x):\n    for one in x:\n        if one > 0:\n            g(one)\n"
    fixes = proposals(found(text, "one > 0", "GB0170", message=f"Graph break: {message}"), text)
    titles = {fix.title: applied(text, fix.edits) for fix in fixes}
    assert (PLAIN in titles) == offered
    if offered:
        assert titles[PLAIN] == text.replace("def f", "@torch.compiler.disable(recursive=False)\ndef f")
        assert fixes[-1].title == PLAIN
