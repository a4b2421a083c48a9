"""Guards in words."""

from __future__ import annotations

import pytest
from irscope.ir.guards import GuardList, guards_of
from irscope_server.base.functions import outline_of
from irscope_server.language.guard_words import argument_text, check_text, latency_text
from made import compile_of

FILE = "/w/script.py"
SITE = "  # y = x + n  # /w/script.py:5 in f"


def guards(*checks: str, compile: str = "0/0", others: tuple[str, ...] = (), latency: str = "121.22") -> GuardList:
    text = "\n".join([*(f"| +- {check}" for check in checks), f"Guard latency = {latency} us"])
    mine = compile_of(FILE, compile)
    return guards_of(mine, text, [mine, *(compile_of(FILE, f"0/{n + 1}", reasons=(r,)) for n, r in enumerate(others))])


TENSOR = (
    "TENSOR_MATCH: check_tensor(L['x'], Tensor, DispatchKeySet(CPU, BackendSelect), torch.float32, device=None, "
    "requires_grad=False, size=[None, 4], stride=[4, 1])" + SITE
)


@pytest.mark.parametrize(
    ("check", "text"),
    [
        (TENSOR, "`x` is a `Tensor`: float32, size \\[any, 4\\], stride \\[4, 1\\], no grad"),
        ("EQUALS_MATCH: L['n'] == 4" + SITE, "`n == 4`"),
        ("TYPE_MATCH: ___check_type_id(L['n'], 94012), type=<class 'int'>" + SITE, "`n` is of type `int`"),
        (
            "ID_MATCH: ___check_obj_id(L['self'].drop.training, 94012), type=<class 'bool'>" + SITE,
            "`self.drop.training` is the same object (of type `bool`)",
        ),
        (
            "DIMENSION_DYNAMIC_MARKING_GUARD: hasattr(L['x'], '_dynamo_dynamic_indices') == False" + SITE,
            "the marks of dimensions of `x` (for example `mark_dynamic`)",
        ),
    ],
)
def test_a_check_in_words(check: str, text: str) -> None:
    (guard,) = guards(check).guards
    assert check_text(guard) == text


def test_the_guards_on_an_argument() -> None:
    marks = [f"DIMENSION_DYNAMIC_MARKING_GUARD: hasattr(L['x'], '_{n}') == False{SITE}" for n in range(3)]
    first = guards(*marks, TENSOR, "EQUALS_MATCH: L['n'] == 4" + SITE, others=("0/0: L['n'] == 4",))
    second = guards(TENSOR, compile="0/1")
    assert argument_text("n", [first, second], str) == (
        "**`n`** is checked before compiled code runs:\n\n"
        "- `n == 4` · [line 5](/w/script.py#L5) · **failed 1 time** · `0/0`"
    )
    rows = argument_text("x", [first, second], str).split("\n")[2:]
    assert len(rows) == 2 and rows[0].endswith("`0/0`, `0/1`") and "marks of dimensions" in rows[1]
    assert argument_text("y", [first], str) == ""


def test_what_failed_comes_first() -> None:
    both = guards("TYPE_MATCH: L['n'] != 1" + SITE, "EQUALS_MATCH: L['n'] == 4" + SITE, others=("0/0: L['n'] == 4",))
    assert [row[:9] for row in argument_text("n", [both], str).split("\n")[2:]] == ["- `n == 4", "- `n != 1"]


def test_more_than_anybody_reads() -> None:
    many = guards(*(f"EQUALS_MATCH: L['n'][{n}] == {n}{SITE}" for n in range(40)))
    rows = argument_text("n", [many], str).split("\n")[2:]
    assert len(rows) == 13 and rows[-1] == "- and 28 more"


def test_the_time_of_all_guards() -> None:
    assert latency_text([guards(TENSOR), guards(TENSOR, TENSOR, compile="0/1", latency="3.5")]) == (
        "Guards, and the time of one check of them all: `0/0` 1, 121 µs · `0/1` 2, 3.5 µs"
    )
    assert latency_text([]) == ""


def test_the_parameter_at_a_place() -> None:
    text = "def f(é, x: int = 3, *rest,\n      key=1, **more):\n    return x\n"
    lines = text.split("\n")
    outline = outline_of(text)
    assert outline
    (function,) = outline.functions

    def at(line: int, column: int) -> str | None:
        found = function.parameter_at(line, column, lines)
        return found.name if found else None

    assert [at(1, 6), at(1, 9), at(1, 12), at(1, 22), at(2, 6), at(2, 15), at(3, 11)] == [
        "é", "x", None, "rest", "key", "more", None,
    ]  # fmt: skip
