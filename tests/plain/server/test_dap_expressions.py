"""The expressions of conditions, watches and log points: what they mean, and that nothing is ever executed."""

from __future__ import annotations

from typing import Any

import pytest
from irscope.values.expressions import NotHere, NoValueHere, evaluate, hits_wanted, interpolate, shown
from irscope.values.facts import BadExpression, Facts, Lazy
from irscope_server.dap.protocol.variables import inside


def lookup(name: str) -> Any:
    if name == "kernel":
        raise NotHere("no kernel here")
    return VALUES[name]


USER = Facts("node", "relu = aten.relu", {"name": "relu"})
NODE = Facts(
    "node",
    "mm: f32 = aten.mm",
    {"name": "mm", "dtype": "torch.bfloat16", "shape": [8, "s0"], "bytes": 1024, "flops": None, "late": lambda: 7},
)
VALUES: dict[str, Any] = {"node": NODE, "users": Lazy(5, lambda index: USER), "inputs": [NODE], "text": "aten.mm"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3 - 4", 3),
        ("7 // 2 + 7 % 2", 4),
        ("-node.bytes / 2", -512.0),
        ("node.dtype == torch.bfloat16", True),
        ("node.dtype == torch.float32", False),
        ("users > 4", True),
        ("4 < users <= 5", True),
        ("users == 4", False),
        ("len(users) == 5 and len(text) == 7", True),
        ("'relu' in users and 'mm' not in users", True),
        ("'mm' in text", True),
        ("node.shape[0] == 8 and node.shape == [8, 's0']", True),
        ("node.flops is None", True),
        ("users[0].name", "relu"),
        ("users[-1] == 'relu'", True),
        ("not node.bytes or node.late == 7", True),
        ("node.bytes > 1000 or kernel", True),
    ],
)
def test_values(text: str, value: object) -> None:
    assert evaluate(text, lookup) == value


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("__import__('os').system('true')", "the only function available is len()"),
        ("node.__class__", "a node has no '__class__'"),
        ("node.name.upper()", "the only function available is len"),
        ("(lambda: 1)()", "the only function available is len"),
        ("[x for x in users]", "not supported"),
        ("node.dtype.__class__", "has no '__class__'"),
        ("users if users else 1", "not supported"),
        ("f'{node}'", "not supported"),
        ("2**99", "not supported"),
        ("'a' * 1000", "'a' is not a number"),
        ("1 << 9", "not supported"),
        ("1 // 0", "1 // 0"),
        ("nothing", "nothing"),
        ("users[9]", "there are 5"),
        ("users['a']", "whole numbers"),
        ("users[1:2]", "whole numbers"),
        ("len(3)", "has no length"),
        ("node < 3", "cannot be compared"),
        ("3 in node", "has no entry of that kind"),
        ("1 +", "is not an expression"),
        ("a = 1", "is not an expression"),
        ("\0", "is not an expression"),
        ("(" * 400 + ")" * 400, "is not an expression|nested too deeply"),
        ("-" * 990 + "1", "nested too deeply"),
        ("1" * 1001, "longer than"),
        ("", "is not an expression"),
    ],
)
def test_what_is_refused(text: str, says: str) -> None:
    with pytest.raises(BadExpression, match=f"(?s){says}" if "|" in says else None) as raised:
        evaluate(text, lookup)
    assert "|" in says or says in str(raised.value)


def test_a_name_that_means_nothing_at_this_place_is_told_apart_from_a_wrong_one() -> None:
    with pytest.raises(NoValueHere):
        evaluate("kernel.language == 'cpp'", lookup)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("3", [3, 4, 5, 6]), ("== 3", [3]), (">3", [4, 5, 6]), (">= 3", [3, 4, 5, 6]),
        ("< 3", [1, 2]), ("<=3", [1, 2, 3]), ("% 3", [3, 6]),
    ],
)  # fmt: skip
def test_hit_counts(text: str, wanted: list[int]) -> None:
    test = hits_wanted(text)
    assert [hits for hits in range(1, 7) if test(hits)] == wanted


@pytest.mark.parametrize("text", ["", "x", "% 0", "-1", "3 3", "9" * 10, "== "])
def test_what_is_no_hit_count(text: str) -> None:
    with pytest.raises(BadExpression, match="is not a hit count"):
        hits_wanted(text)


def test_log_messages() -> None:
    assert interpolate("{node.name} has {users > 4} {users[0]}", lookup) == "mm has True relu = aten.relu"
    assert interpolate("{nothing} {", lookup) == "<nothing> {"
    assert interpolate("{1 +}", lookup).startswith("<'1 +' is not an expression")


def test_a_long_list_is_shown_in_one_bounded_line() -> None:
    seen: list[int] = []

    def made(index: int) -> int:
        seen.append(index)
        return index

    line = shown(Lazy(20_000, made))
    assert line.endswith(", …]")
    assert len(seen) == 100


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/w/a b/model.py:3", "model.py:3"),
        ("/home/my name/venv/lib/python3.12/site-packages/torch/nn/functional.py:33", "torch/nn/functional.py:33"),
        ("(1) ['/usr/lib/python3/dist-packages/torch/a.py:4']", "(1) ['torch/a.py:4']"),
        ("/usr/lib/python3.12/contextlib.py", "contextlib.py"),
        (r"C:\env\Lib\site-packages\torch\a.py", r"torch\a.py"),
        ("a/b and /other/model.py", "a/b and /other/model.py"),
    ],
)
def test_a_path_is_told_from_the_folder_or_the_library(path: str, told: str) -> None:
    assert inside(path, "/w/a b") == told
