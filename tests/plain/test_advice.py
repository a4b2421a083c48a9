"""The words of graph breaks, from contexts built by hand; no torch is needed."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

import pytest
from irscope.events.break_message import BreakMessage
from irscope.events.stack import FramePlace
from irscope.fixing import advice
from irscope.fixing.advice import RULES, BreakContext, Option, Words, words_for
from irscope.fixing.advice.spot import Spot
from irscope.protocol import Edit, Position, Range
from irscope.usercode.source import node_at_range

DOCS = Path(__file__).parents[2] / "docs" / "findings" / "graph-break.md"


def message(code: str, explanation: str = "", context: str = "", hints: tuple[str, ...] = ()) -> BreakMessage:
    return BreakMessage(f"Type of {code}", explanation, hints, context, code, None)


class Breaking:
    """A file, and the words for breaks at pieces of it."""

    def __init__(self, folder: Path, source: str) -> None:
        self.source = textwrap.dedent(source).lstrip("\n")
        self.path = folder / "script.py"
        self.path.write_text(self.source, encoding="utf-8")

    def at(self, piece: str, *messages: BreakMessage, payload: str = "", skipped: bool = False) -> Words:
        """The words for a break at the only place where a piece of text stands."""
        assert self.source.count(piece) == 1, f"{piece!r} is not unique"
        before, _, _ = self.source.partition(piece)
        start, end = _position(before), _position(before + piece)
        where = Range(start, end)
        node = node_at_range(str(self.path), where)
        return words_for(BreakContext(messages, str(self.path), "f", where, node, payload, skipped))

    def applied(self, option: Option) -> str:
        """The file with an option's edits, of which no two are at one place."""
        text = self.source
        for edit in sorted(option.edits, key=lambda e: e.range.start, reverse=True):
            text = _edited(text, edit)
        ast.parse(text)
        return text


def _position(before: str) -> Position:
    return Position(before.count("\n") + 1, len(before) - before.rfind("\n") - 1)


def _edited(text: str, edit: Edit) -> str:
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    start = starts[edit.range.start.line - 1] + edit.range.start.column
    end = starts[edit.range.end.line - 1] + edit.range.end.column
    return text[:start] + edit.text + text[end:]


def test_three_parts(tmp_path: Path) -> None:
    file = Breaking(
        tmp_path,
        """
        import torch

        def f(x):
            y = x.sin()
            total = y.sum()
            scale = total.item()
            return x * scale
        """,
    )
    words = file.at("total.item()", message("GB0124"))
    assert words.message == (
        "Graph break: `total.item()` needs the value of a tensor while tracing; the graph is cut here."
    )
    assert "from `total = y.sum()` (line 5), and that from `y = x.sin()` (line 4), and that from the argument `x`" in (
        words.explanation
    )
    assert words.hints[0].startswith("Keep it a tensor: `scale = total.detach()`.")
    assert words.options[0].edits
    assert "scale = total.detach()\n" in file.applied(words.options[0])
    assert [option.hint for option in words.options] == list(words.hints)


def test_chain_says_cause_and_consequence(tmp_path: Path) -> None:
    file = Breaking(
        tmp_path,
        """
        import torch

        def f(x):
            for i in range(3):
                print("step", i)
            return x
        """,
    )
    explained = "argument types ['str', 'int'] (has_kwargs False)"
    words = file.at(
        'print("step", i)', message("GB0059", explained, "builtin print ["), message("GB7000"), skipped=True
    )
    assert words.message == (
        'Graph break: `print("step", i)` writes while tracing; the whole function runs as plain Python.'
    )
    assert "cannot write in the middle" in words.explanation
    assert "inside of a loop" in words.explanation
    assert "reorderable_logging_functions.add(print)" in words.hints[0]
    assert len(words.hints) <= 3


def test_unknown_id_has_the_words_of_the_registry(tmp_path: Path) -> None:
    file = Breaking(tmp_path, "def f(x):\n    return odd(x)\n")
    entry = BreakMessage(
        "Some odd thing",
        "It is <object at 0x7f00> and\n  cannot be.",
        ("Please report an issue to PyTorch.", "Try something  else."),
        "call LazyVariableTracker(realized: FooVariable(x))",
        "GB9999",
        None,
    )
    words = file.at("odd(x)", entry)
    assert words.message == "Graph break: some odd thing at `odd(x)`; the graph is cut here."
    assert words.explanation == "It is <object> and cannot be."
    assert words.hints == ("Try something else.",)


def test_no_message_and_no_node(tmp_path: Path) -> None:
    place = Range(Position(3, 0), Position(3, 1))
    words = words_for(BreakContext((), str(tmp_path / "none.py"), "f", place, None, "", True))
    assert words.message == "Graph break: Dynamo cannot trace this; the whole function runs as plain Python."


def test_a_rule_that_fails_costs_only_its_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(spot: object) -> advice.model.Advice:
        raise RuntimeError("no")

    monkeypatch.setitem(RULES, "GB0025", broken)
    words = Breaking(tmp_path, "def f(x):\n    stop()\n").at("stop()", message("GB0025"))
    assert words.message == "Graph break: type of GB0025 at `stop()`; the graph is cut here."


BRANCHES = [
    (
        "if x.sum() > 0:\n        x = x + 1\n    return x",
        "x.sum() > 0",
        "x = torch.where(x.sum() > 0, x + 1, x)\n    return x",
    ),
    ("if x.any():\n        return x * 2\n    return x", "x.any()", "return torch.where(x.any(), x * 2, x)"),
    ("return x if x.all() else -x", "x.all()", "return torch.where(x.all(), x, -x)"),
    (
        "if not x.any():\n        raise ValueError('empty')\n    return x",
        "if not x.any():\n        raise ValueError('empty')",
        "torch._assert_async(x.any(), 'empty')\n    return x",
    ),
    (
        'assert x.sum() > 0, f"bad {x}"\n    return x',
        "x.sum() > 0",
        "assert x.sum() > 0, 'bad …'\n    return x",
    ),
    (
        "if 0 < x.sum() < 5:\n        x += 1\n    return x",
        "0 < x.sum() < 5",
        "x = torch.where((0 < x.sum()) & (x.sum() < 5), x + 1, x)\n    return x",
    ),
    (
        "if x.max() > 1:\n        return x\n    y = x * 2\n    return y.sin()",
        "x.max() > 1",
        "return torch.where(x.max() > 1, x, (x * 2).sin())",
    ),
    (
        "if x.min() > 1:\n        return x\n    for _ in range(3):\n        x = x * 2\n    return x.sin()",
        "x.min() > 1",
        "stop, early = x.min() > 1, x\n    for _ in range(3):\n        x = x * 2\n"
        "    return torch.where(stop, early, x.sin())",
    ),
    (
        "if x.sum() > 2:\n        x = x + 1\n        x = x * 2\n    return x",
        "x.sum() > 2",
        "x = torch.where(x.sum() > 2, (x + 1) * 2, x)\n    return x",
    ),
    (
        "if x.dim() == 1:\n        y = x\n    elif x.sum() > 0:\n        y = x + 1\n    else:\n        y = -x\n    return y",
        "x.sum() > 0",
        "if x.dim() == 1:\n        y = x\n    else:\n        y = torch.where(x.sum() > 0, x + 1, -x)\n    return y",
    ),
]


@pytest.mark.parametrize(("body", "piece", "expected"), BRANCHES, ids=[piece for _, piece, _ in BRANCHES])
def test_branch_becomes(tmp_path: Path, body: str, piece: str, expected: str) -> None:
    file = Breaking(tmp_path, f"import torch\n\ndef f(x):\n    {body}\n")
    words = file.at(piece, message("GB0170"))
    assert file.applied(words.options[0]) == f"import torch\n\ndef f(x):\n    {expected}\n"


@pytest.mark.parametrize(
    "body",
    [
        "if x.sum() > 0:\n        log.append(x)\n    return x",  # an effect
        "if x.sum() > 0:\n        name = 'a'\n    else:\n        name = 'b'\n    return x",  # no tensors
        "if x.sum() > 0:\n        y = x + 1\n    return x",  # y is not bound on the other side
        "if x.sum() > 0:\n        return x, 1\n    return x, 2",  # tuples
    ],
)
def test_no_edit_where_it_would_be_wrong(tmp_path: Path, body: str) -> None:
    file = Breaking(tmp_path, f"import torch\n\ndef f(x):\n    {body}\n")
    words = file.at("x.sum() > 0", message("GB0170"))
    assert words.options
    assert not any(option.edits for option in words.options)


def test_numbers_and_names_of_the_file(tmp_path: Path) -> None:
    """The names that the file gives to modules are used, and new names do not clash."""
    file = Breaking(
        tmp_path,
        """
        import torch as th
        from pickle import dumps as dump

        PLAN = [1]
        _DATA = 3

        class M(th.nn.Module):
            def forward(self, größe):
                data = dump(PLAN)
                print(größe)
                return größe
        """,
    )
    context = "module: _pickle, qualname: dumps, skip reason: C extension"
    first = file.at("dump(PLAN)", message("GB0007", "", context)).options[0]
    text = file.applied(first)
    assert "_DATA = 3\n_DATA_2 = dump(PLAN)\n\n\nclass M" in text
    assert "data = _DATA_2\n" in text
    words = file.at(
        "print(größe)", message("GB0059", "argument types ['object'] (has_kwargs False)", "builtin print [")
    )
    assert "if not th.compiler.is_compiling():\n            print(größe)" in file.applied(words.options[0])


def test_module_that_is_not_imported_is_imported(tmp_path: Path) -> None:
    file = Breaking(tmp_path, "from torch import nn\n\ndef f(x):\n    if x.any():\n        x = x + 1\n    return x\n")
    words = file.at("x.any()", message("GB0170"))
    assert file.applied(words.options[0]).startswith("from torch import nn\nimport torch\n\n\ndef f(x):")


def test_local_name_of_a_module_is_no_module(tmp_path: Path) -> None:
    file = Breaking(tmp_path, "def f(queue):\n    queue.get()\n    return 1\n")
    words = file.at("queue.get()", message("GB0156", "Dynamo does not know how to trace method `get` of class `Q`"))
    assert "threads" not in words.message


def test_the_caller_is_not_told_of_local_names(tmp_path: Path) -> None:
    file = Breaking(
        tmp_path,
        """
        import threading
        import torch

        def f(x, y):
            lock = threading.Lock()
            lock.acquire()
            x = x + 1
            if x.sum() > 0:
                y.append(x)
            if y.sum() > 0:
                y.append(x)
            return x
        """,
    )
    assert file.at("lock.acquire()", message("GB0156")).hints == ("Hold the lock in the caller.",)
    assert "flag" not in str(file.at("x.sum() > 0", message("GB0170")).hints)
    assert "flag = bool(y.sum() > 0)\n    result = f(x, y, flag)" in file.at("y.sum() > 0", message("GB0170")).hints[0]


def test_the_caller_decides_on_an_argument_without_another(tmp_path: Path) -> None:
    given = Breaking(tmp_path, "def f(x, flag):\n    if (flag):\n        x.append(1)\n    return x\n")
    assert "flag = bool(flag)\n    result = f(x, flag)" in given.at("(flag)", message("GB0170")).hints[0]


@pytest.mark.parametrize(
    ("function", "made"), [("asdict", "dict(vars(state))"), ("astuple", "tuple(vars(state).values())")]
)
def test_the_fields_of_a_dataclass(tmp_path: Path, function: str, made: str) -> None:
    text = f"from dataclasses import {function}\n\ndef f(state):\n    return {function}(state)\n"
    file = Breaking(tmp_path, text)
    (option,) = file.at(f"{function}(state)", message("GB4198")).options
    assert file.applied(option) == text.replace(f"{function}(state)", made)


def test_origin_in_another_file(tmp_path: Path) -> None:
    """PyTorch's own attribution is used where the value was made elsewhere."""
    other = tmp_path / "other.py"
    other.write_text("def total(x):\n    return x.sum()\n", encoding="utf-8")
    file = Breaking(tmp_path, "import torch\n\ndef f(x):\n    if total(x) > 0:\n        x = x + 1\n    return x\n")
    payload = f"""
      The branch condition involves a tensor computed as follows:
        # File "{other}", line 2, in total, code: return x.sum()
        total = sum_1(x)
    """
    words = file.at("total(x) > 0", message("GB0170"), payload=payload)
    assert "`return x.sum()` (other.py, line 2)" in words.explanation


def test_generator(tmp_path: Path) -> None:
    file = Breaking(tmp_path, "import torch\n\ndef steps(x):\n    yield x + 1\n")
    words = file.at("yield x + 1", message("GB0003"), skipped=True)
    assert "`steps` is a generator" in words.message
    assert "return list(steps(x))" in words.hints[0]


@pytest.mark.parametrize("code", sorted(RULES))
def test_every_rule_speaks_at_any_code(tmp_path: Path, code: str) -> None:
    """No rule fails where the line is not what it was written for, and every one of its edits parses."""
    source = """
        import os
        import torch

        def f(x, y=None):
            with os.scandir(x) as z:
                a = x.b[0].c(*y, k=1)
            d: int = lambda q: q @ 2
            async_ = [i for i in x if i]
            del a; x.e(1); return a[x:y] if x else f"{x!r}"
    """
    pieces = ["with os.scandir(x) as z:\n        a = x.b[0].c(*y, k=1)", "x.b[0].c(*y, k=1)", "q @ 2", "x.e(1)",
              "a[x:y]", 'return a[x:y] if x else f"{x!r}"', "[i for i in x if i]", "del a", "y=None"]  # fmt: skip
    file = Breaking(tmp_path, source)
    for piece in pieces:
        before, _, _ = file.source.partition(piece)
        where = Range(_position(before), _position(before + piece))
        node = node_at_range(str(file.path), where)
        context = BreakContext((message(code, "words"),), str(file.path), "f", where, node, "", False)
        if node is not None:
            RULES[code](Spot(context))
        for option in words_for(context).options:
            assert option.hint.strip()
            if len({edit.range for edit in option.edits}) == len(option.edits):
                file.applied(option)


def test_hint_of_an_option() -> None:
    assert Option("Do it").hint == "Do it."
    assert Option("Do it", "a = 1", "It is so.").hint == "Do it: `a = 1`. It is so."
    assert Option("Do it", "a = 1\nb = 2", "It is so.").hint == "Do it:\n    a = 1\n    b = 2\nIt is so."


def test_the_page_lists_every_id() -> None:
    page = DOCS.read_text(encoding="utf-8")
    assert [code for code in RULES if code not in page] == []
    assert len(RULES) >= 40


@pytest.mark.parametrize(
    "library", ["torch/distributed/fsdp/_fully_shard/_fsdp_common.py", "torch/_dynamo/decorators.py"]
)
def test_a_sharded_module_is_compiled_by_itself(tmp_path: Path, library: str) -> None:
    file = Breaking(tmp_path, "def f(x):\n    return block(x)\n")
    where = Range(Position(2, 11), Position(2, 19))
    beneath = (FramePlace(f"/env/{library}", "wrapper", where, traced=True),)
    node = node_at_range(str(file.path), where)
    words = words_for(BreakContext((message("GB0007"),), str(file.path), "f", where, node, "", True, beneath))
    is_sharded = "_fully_shard" in library
    assert ("`fully_shard`" in words.message) is is_sharded
    assert ("torch.compile(block)" in " ".join(words.hints)) is is_sharded
