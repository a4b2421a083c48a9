"""The custom messages: their names on the wire, and what is refused.  docs/PROTOCOL.md is held to."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from irscope.protocol import Lane
from irscope_server.app.features import make_server
from irscope_server.base import wire

PROTOCOL = (Path(__file__).parents[3] / "docs" / "PROTOCOL.md").read_text()


def test_names_are_in_camel_case() -> None:
    entries = wire.EntriesResult("a.py", None, (wire.EntryCandidate("b.py", "imports it"),))
    assert wire.to_wire([wire.DocumentResult("x", "python"), entries]) == [
        {"text": "x", "languageId": "python"},
        {"file": "a.py", "entry": None, "candidates": [{"entry": "b.py", "detail": "imports it"}]},
    ]


def test_parameters() -> None:
    assert wire.from_wire(wire.RunParams, {"uri": "u", "lane": "fast", "more": 1}) == wire.RunParams("u", Lane.FAST)
    assert wire.from_wire(wire.RunsParams, None) == wire.RunsParams(None, 20)
    assert wire.from_wire(wire.RunsParams, {"uri": None}) == wire.RunsParams(None, 20)
    compared = {"run": "r", "stage": "s", "compareWith": "t"}
    assert wire.from_wire(wire.GraphParams, compared) == wire.GraphParams("r", "s", "t")


@pytest.mark.parametrize(
    ("cls", "data", "complaint"),
    [
        (wire.RunParams, {}, "'uri' is missing"),
        (wire.RunParams, {"uri": 1}, "'uri' must be a str, not int"),
        (wire.RunParams, {"uri": "u", "lane": "slow"}, "'lane' must be 'fast' or 'deep', not 'slow'"),
        (wire.KernelsAtParams, {"uri": "u", "line": True}, "'line' must be a int, not bool"),
        (wire.KernelsAtParams, [], "the parameters must be an object, not list"),
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
    assert set(wire.PARAMS) == handled


@pytest.mark.parametrize(
    "cls",
    [wire.RunItem, wire.RunTree, wire.CompileItem, wire.StageItem, wire.KernelItem],
    ids=lambda cls: cls.__name__,
)
def test_the_fields_are_those_of_the_protocol(cls: Any) -> None:
    body = re.search(rf"interface {cls.__name__}\s*{{(.*?)}}\n(?=\n|interface)", PROTOCOL, re.DOTALL)
    assert body
    text = re.sub(r"/\*.*?\*/", "", body[1])
    while re.search(r"{[^{}]*}", text):
        text = re.sub(r"{[^{}]*}", "object", text)
    assert [name.strip("?") for name in re.findall(r"(\w+\??):", text)] == [
        wire_name for _, wire_name in wire._names(cls)
    ]
