"""Durations that may be unknown, and text of unknown origin in Markdown."""

from __future__ import annotations

import pytest
from irscope.protocol import StageRef
from irscope_server.base import words


@pytest.mark.parametrize(("value", "text"), [(0, ""), (0.0004, ""), (0.0031, "3.1 ms"), (119.7, "2 min 0 s")])
def test_known_durations(value: float, text: str) -> None:
    assert words.known_duration(value) == text


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("a `x` b", "a `x` b"),
        ("snake_case _it_ *b*", r"snake_case \_it\_ \*b\*"),
        ("<img src=x onerror=1> & [a](b)", r"\<img src=x onerror=1\> \& \[a\](b)"),
        ("# no heading", r"\# no heading"),
        ("1. no list", r"1\. no list"),
        ("http://evil", r"http\://evil"),
        ("one\n\n# two", "one # two"),
        ("`` odd ` ticks", r"\`\` odd \` ticks"),
        ("a `<b>|*` c", "a `<b>|*` c"),
        ("$(icon)", r"\$(icon)"),
        ("see www.evil.org", r"see www\.evil.org"),
        ("a\u202eb\x1b[31m", r"a\\u202eb\\u001b\[31m"),
        ("`a\u202eb`", r"`a\u202eb`"),
    ],
)
def test_nothing_in_foreign_text_is_markup(text: str, escaped: str) -> None:
    assert words.markdown(text) == escaped


@pytest.mark.parametrize(
    ("text", "span"), [("x", "`x`"), ("a`b", "``a`b``"), ("`a", "`` `a ``"), ("a\nb", "`a b`"), ("", "")]
)
def test_code_spans_hold_any_text(text: str, span: str) -> None:
    assert words.code_span(text) == span


@pytest.mark.parametrize(
    ("id", "name", "title"),
    [
        ("0/0/forward-graph", "forward-graph", "Forward graph"),
        ("0/0/kernel/cpp_fused_relu_0", "kernel", "Kernel cpp_fused_relu_0"),
        ("0/0/kernel-backward/k0/assembly", "assembly", "Assembly of k0"),
        ("0/0/kernel/k0/ttgir/27-licm", "ttgir", "Triton GPU IR of k0 after 27-licm"),
        ("0/0/memory-plan", "memory-plan", "Memory plan"),
        ("0/0/symbolic-trace/attempt-0", "symbolic-trace", "Symbolic trace, first attempt"),
        ("0/0/symbolic-trace/attempt-3", "symbolic-trace", "Symbolic trace, attempt 4"),
    ],
)
def test_titles_of_stages(id: str, name: str, title: str) -> None:
    assert words.stage_title(StageRef(id, name, "python", 0)) == title


def test_paragraphs_and_code_of_a_hint() -> None:
    hint = "Leave it <out>:\n    if not x:\n        print(`a`)\n\n    y = 1\nThen `it` is quiet."
    assert words.markdown_blocks(hint) == (
        "Leave it \\<out\\>:\n\n```python\nif not x:\n    print(`a`)\n\ny = 1\n```\n\nThen `it` is quiet."
    )
    assert words.list_item(words.markdown_blocks("A:\n    b")) == "- A:\n\n  ```python\n  b\n  ```"


def test_code_cannot_end_its_fence() -> None:
    assert words.markdown_blocks("    ```\n    # title") == "````python\n```\n# title\n````"
