"""PyTorch's text of a graph break, taken apart; the texts in `messages/` were written by torch 2.13."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from irscope.events import break_message as breakmessage
from irscope.events.break_message import (
    code_of_type,
    parse_break_messages,
    parse_data_dependent_guard,
    sentences,
)
from irscope.events.trace import is_skipped

MESSAGES = Path(__file__).parent / "messages"
SITE = "https://meta-pytorch.github.io/compile-graph-break-site/gb/"
PRINT_HINTS = (
    "Avoid calling builtin `print` with argument types ['str']. Consider using an equivalent alternative function/method to `print`.",
    "If you are attempting to call a logging function (e.g. `print`), you can try adding it to `torch._dynamo.config.reorderable_logging_functions`.",
    "Please report an issue to PyTorch.",
)


def text_of(name: str) -> str:
    return (MESSAGES / f"{name}.txt").read_text()


def test_one_break_rethrown_by_another() -> None:
    """The cause is the first."""
    cause, loop = parse_break_messages(text_of("chain"))
    assert cause.type == "Failed to trace builtin operator"
    assert cause.explanation == (
        "Dynamo does not know how to trace builtin operator `print` with argument types ['str'] (has_kwargs False)"
    )
    assert cause.hints == PRINT_HINTS
    assert cause.context == "builtin print [<class 'torch._dynamo.variables.constant.ConstantVariable'>] False"
    assert (cause.code, cause.link) == ("GB0059", SITE + "gb0059.html")
    assert (loop.type, loop.code, loop.link) == ("graph break in loop", "GB7000", SITE + "gb7000.html")
    assert loop.hints == (
        "This graph break may have been caused by an earlier graph break. Resolving the earlier graph break may resolve this one.",
    )
    assert loop.context == "frame skipped: f (/home/me/breaks.py line 8)"
    assert is_skipped(text_of("chain"))


def test_a_break_that_the_user_asked_for() -> None:
    (message,) = parse_break_messages(text_of("own_break"))
    assert message.type == "Call to `torch._dynamo.graph_break()`"
    assert message.explanation == "User-inserted graph break. Message: None"
    assert message.hints == ("Remove the `torch._dynamo.graph_break()` call.",)
    assert message.code == "GB0025"
    assert not is_skipped(text_of("own_break"))


def test_a_break_in_a_higher_order_operator() -> None:
    (message,) = parse_break_messages(text_of("higher_order"))
    assert (message.type, message.code) == ("Failed to trace builtin operator", "GB0059")
    assert "torch.utils.checkpoint" not in message.explanation
    assert message.hints == PRINT_HINTS


def test_parts_of_several_lines() -> None:
    (message,) = parse_break_messages(
        "Something odd\n  Explanation: first\n    second\n\n    third\n  Hint: do\n    this\n\n  Developer debug context: a\n    b\n\nfrom user code:\n   x\n"
    )
    assert message.explanation == "first\nsecond\n\nthird"
    assert message.hints == ("do\nthis",)
    assert message.context == "a\nb"
    assert (message.code, message.link) == ("", None)


@pytest.mark.parametrize(
    "text", ["", "ValueError: no", "  Explanation: nothing above it", "*** While handling", "\n\n"]
)
def test_what_is_no_graph_break(text: str) -> None:
    assert parse_break_messages(text) == []


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A registry like the one inside torch, in a torch that is not there."""
    folder = tmp_path / "torch" / "_dynamo"
    folder.mkdir(parents=True)
    monkeypatch.setitem(
        __import__("sys").modules, "torch", SimpleNamespace(__file__=str(tmp_path / "torch" / "__init__.py"))
    )
    breakmessage._registry.cache_clear()
    yield folder / "graph_break_registry.json"
    breakmessage._registry.cache_clear()


def test_the_id_in_a_link_counts_more_than_that_of_the_registry(registry: Path) -> None:
    """Another version of torch may have written the message."""
    registry.write_text(json.dumps({"GB0001": [{"Gb_type": "Something odd"}]}))
    (message,) = parse_break_messages(f"Something odd\n  Explanation: why\n\n  For more details: {SITE}gb0123.html\n")
    assert (message.code, message.link) == ("GB0123", SITE + "gb0123.html")


def test_the_id_of_a_type_that_comes_without_a_link(registry: Path) -> None:
    registry.write_text(json.dumps({"GB0001": [{"Gb_type": "Something odd"}], "GB0002": []}))
    (message,) = parse_break_messages("Something odd\n  Explanation: why\n")
    assert (message.code, message.link) == ("GB0001", None)
    assert code_of_type("Something else") == ""


@pytest.mark.parametrize("content", ["", "[]", "[1]", '{"GB0001": 3}', '{"GB0001": [{}]}', '{"GB0001": [[]]}'])
def test_a_registry_that_looks_otherwise(registry: Path, content: str) -> None:
    registry.write_text(content)
    assert code_of_type("Something odd") == ""


def test_no_registry(registry: Path) -> None:
    assert code_of_type("Something odd") == ""


def test_a_break_of_torch_2_9_without_parts() -> None:
    (message,) = parse_break_messages("""\
Graph break in user code at /tmp/gb.py:5
Graph Break Reason: Logger not supported for non-export cases. To avoid graph breaks caused by logger in
 compile-mode, disable logging.
User code traceback:
  File "/tmp/gb.py", line 5, in f
    log.warning("shape")
""")
    assert message.type == "Logger not supported for non-export cases"
    assert message.explanation == "To avoid graph breaks caused by logger in compile-mode, disable logging."
    assert (message.code, message.hints, message.link) == ("", (), None)
    assert sentences("Graph break under X\n\nfrom user code:\n  a.py").type == "Graph break under X"
    skipped = sentences(
        'SKIPPED INLINING <code object __enter__ at 0x7f2c9eb04ae0, file "/lib/contextlib.py", line 132>: '
    )
    assert skipped.type == "SKIPPED INLINING `__enter__`"


def test_a_reason_after_a_heading() -> None:
    """What PyTorch was doing is not why it stopped."""
    text = (
        "Graph break in user code at a.py:3\n"
        "Graph Break Reason: Encountered graph break when attempting to trace CALL: a function call, e.g. f(x, y):\n\n"
        "Something odd happened. It cannot be helped.\n\nUser code traceback:\n"
    )
    (message,) = parse_break_messages(text)
    assert (message.type, message.explanation) == ("Something odd happened", "It cannot be helped.")


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("Could not guard on data-dependent expression Eq(u0, 0) (unhinted: Eq(u0, 0)).  (Size-like: u0)", "u0 == 0"),
        (
            "Consider torch._check*(). Could not guard on data-dependent expression 8*u1 < 24 (unhinted: 8*u1 < 24).",
            "8*u1 < 24",
        ),
        ("Could not extract specialized integer from data-dependent expression u0 (unhinted: u0).", "u0"),
    ],
)
def test_data_dependent_guard(text: str, expression: str) -> None:
    message = parse_data_dependent_guard(text)
    assert message is not None
    assert (message.code, message.context) == ("data-dependent-guard", expression)


def test_another_error_is_not_a_guard() -> None:
    assert parse_data_dependent_guard("size mismatch, got input (2)") is None
