"""The custom messages: their names on the wire, and what is refused.  docs/PROTOCOL.md is held to."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from irscope.protocol import Lane
from irscope_server.app.features import make_server
from irscope_server.base import wire
from irscope_server.base.params import PARAMS, GraphParams, KernelsAtParams, RunParams, RunsParams
from irscope_server.base.results import (
    CompileItem,
    DocumentResult,
    EntriesResult,
    EntryCandidate,
    KernelItem,
    RunItem,
    RunTree,
    StageItem,
)

ROOT = Path(__file__).parents[3]
PROTOCOL = (ROOT / "docs" / "PROTOCOL.md").read_text("utf-8")
TYPES = (ROOT / "extension" / "src" / "protocol.ts").read_text("utf-8")


def test_names_are_in_camel_case() -> None:
    entries = EntriesResult("a.py", None, (EntryCandidate("b.py", "imports it"),))
    assert wire.to_wire([DocumentResult("x", "python"), entries]) == [
        {"text": "x", "languageId": "python"},
        {"file": "a.py", "entry": None, "candidates": [{"entry": "b.py", "detail": "imports it"}]},
    ]


def test_parameters() -> None:
    assert wire.from_wire(RunParams, {"uri": "u", "lane": "fast", "more": 1}) == RunParams("u", Lane.FAST)
    assert wire.from_wire(RunsParams, None) == RunsParams(None, 20)
    assert wire.from_wire(RunsParams, {"uri": None}) == RunsParams(None, 20)
    compared = {"run": "r", "stage": "s", "compareWith": "t"}
    assert wire.from_wire(GraphParams, compared) == GraphParams("r", "s", "t")


@pytest.mark.parametrize(
    ("cls", "data", "complaint"),
    [
        (RunParams, {}, "'uri' is missing"),
        (RunParams, {"uri": 1}, "'uri' must be a str, not int"),
        (RunParams, {"uri": "u", "lane": "slow"}, "'lane' must be 'fast' or 'deep', not 'slow'"),
        (KernelsAtParams, {"uri": "u", "line": True}, "'line' must be a int, not bool"),
        (KernelsAtParams, [], "the parameters must be an object, not list"),
    ],
)
def test_what_does_not_fit_is_named(cls: type[Any], data: Any, complaint: str) -> None:
    with pytest.raises(wire.BadParams, match=re.escape(complaint)):
        wire.from_wire(cls, data)


def test_every_custom_message_of_the_protocol_is_there_and_no_other() -> None:
    documented = set(re.findall(r'^"(irscope/\w+)":', PROTOCOL, re.MULTILINE))
    sent = {"irscope/worker", "irscope/runsChanged", "irscope/output", "irscope/fileState"}
    handled = {method for method in make_server().protocol.fm.features if method.startswith("irscope/")}
    assert documented == handled | sent
    assert set(PARAMS) == handled


@pytest.mark.parametrize(
    "cls",
    [RunItem, RunTree, CompileItem, StageItem, KernelItem],
    ids=lambda cls: cls.__name__,
)
def test_the_fields_are_those_of_the_protocol(cls: Any) -> None:
    body = re.search(rf"interface {cls.__name__}\s*{{(.*?)}}\n(?=\n|interface)", TYPES, re.DOTALL)
    assert body
    text = re.sub(r"/\*.*?\*/", "", body[1])
    while re.search(r"{[^{}]*}", text):
        text = re.sub(r"{[^{}]*}", "object", text)
    assert [name.strip("?") for name in re.findall(r"(\w+\??):", text)] == [
        wire_name for _, wire_name in wire._names(cls)
    ]
