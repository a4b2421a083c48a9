"""`irscope mcp` spoken to in bytes: every request is answered, and the server goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from irscope_server.agents.lines import line_of
from mcp.types import JSONRPCResponse
from raw import RawAgent

_PING = b'{"jsonrpc": "2.0", "id": %s, "method": "ping"%s}'
_CALL = b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "%s", "arguments": %s}}'


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawAgent]:
    folder = tmp_path_factory.mktemp("answered")
    started = RawAgent(folder / "runs.db", cwd=folder)
    started.begin()
    yield started
    started.close()


def _deep(levels: int) -> bytes:
    return b'{"run": ' + b"[" * levels + b"]" * levels + b"}"


@pytest.mark.parametrize(
    ("line", "id", "code"),
    [
        (_CALL % (b"findings", rb'{"run": "a\ud800b"}'), 7, -32600),
        (_CALL % (b"findings", rb'{"cursor": "\uDFFF"}'), 7, -32600),
        (_CALL % (b"findings", rb'{"\ud800": 1}'), 7, -32600),
        (_CALL % (rb"find\ud800ings", b"{}"), 7, -32600),
        (_CALL % (b"find\xed\xa0\x80ings", b"{}"), 7, -32600),
        (_CALL % (b"find\xffings", b"{}"), 7, -32700),
        (rb'{"jsonrpc": "2.0", "id": 7, "method": "tools\ud800/call", "params": {}}', 7, -32600),
        (_PING % (rb'"\ud800"', b""), "\ud800", -32600),
        (_PING % (b"null", b""), None, -32600),
        (_PING % (b"true", b""), None, -32600),
        (_PING % (b"1.5", b""), None, -32600),
        (_PING % (b"9" * 5000, b""), None, -32700),
        (_PING % (b"7", b', "params": [1]'), 7, -32600),
        (_PING % (b"7", b', "error": {}'), 7, -32600),
        (_PING % (b"7", b', "params": '), 7, -32700),
        (b'{"jsonrpc": "2.0", "id": 7, "method": 5}', 7, -32600),
        (b'{"jsonrpc": "2.0", "id": 7}', 7, -32600),
        (b'{"id": 7, "method": "ping"}', 7, -32600),
        (b"[" + _PING % (b"7", b"") + b"]", 7, -32600),
        (b"[]", None, -32600),
        (b"not JSON", None, -32700),
        (_CALL % (b"findings", _deep(600)), 7, -32600),
        (_CALL % (b"findings", _deep(100_000)), 7, -32700),
        (_CALL % (b"findings", b'{"max_bytes": ' + b"9" * 5000 + b"}"), 7, -32700),
        (_CALL % (b"findings", b"[]"), 7, -32602),
        (b'{"jsonrpc": "2.0", "id": 7, "method": "nothing"}', 7, -32601),
    ],
    ids=lambda value: repr(value)[:100] if isinstance(value, bytes) else None,
)
def test_what_cannot_be_read_is_refused(agent: RawAgent, line: bytes, id: object, code: int) -> None:
    agent.write(agent.frame(line))
    assert agent.answer(id)["error"]["code"] == code


@pytest.mark.parametrize(
    "arguments", [b'{"max_bytes": NaN}', b'{"max_bytes": -Infinity}', b'{"max_bytes": 1e308}', _deep(300), rb'{"run": "\u0000"}']
)  # fmt: skip
def test_what_a_tool_does_not_take_is_its_failure(agent: RawAgent, arguments: bytes) -> None:
    agent.write(agent.frame(_CALL % (b"findings", arguments)))
    assert agent.answer(7)["result"]["isError"]


@pytest.mark.parametrize("id", [b"9" * 400, b'""', b"-1", b'"' + b"a" * 100_000 + b'"', rb'"\ud83d\ude00"'], ids=len)
def test_an_id_comes_back_as_it_was_sent(agent: RawAgent, id: bytes) -> None:
    agent.write(agent.frame(_PING % (id, b"")))
    assert agent.answer(json.loads(id))["result"] == {}


def test_a_notification_is_not_answered(agent: RawAgent) -> None:
    agent.seen.clear()
    for line in (rb'{"jsonrpc": "2.0", "method": "\ud800"}', b'{"jsonrpc": "2.0", "method": "x", "params": 1}', b""):
        agent.write(agent.frame(line))
    agent.ask("after", "ping")
    assert [message.get("id") for message in agent.seen] == ["after"]


def test_an_answer_never_has_half_of_a_pair() -> None:
    """What a tool reads as JSON can hold one, and some clients cannot read it; an ID is the client's own."""
    answer = JSONRPCResponse(jsonrpc="2.0", id="\ud800", result={"\udc00": ["a\ud800"]})
    line = line_of(answer)
    assert line.isascii() and json.loads(line) == {"jsonrpc": "2.0", "id": "\ud800", "result": {"?": ["a?"]}}
