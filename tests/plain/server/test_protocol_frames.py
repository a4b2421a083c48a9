"""The frames of the protocols: what no client sends does not end the server."""

from __future__ import annotations

import io
import json

import pytest
from irscope_server.base.bodies import BrokenBody, read_message
from irscope_server.base.transport import END, read_frame

GOOD = b"Content-Length: 2\r\n\r\n{}"


@pytest.mark.parametrize(
    "broken",
    [
        b"Content-Length: -1\r\n\r\n",
        b"Content-Length: x\r\n\r\n",
        b"\r\n\r\n\r\n",
        b"y" * 200_000 + b"\r\n",
    ],
)
def test_a_header_that_cannot_be_is_passed_over(broken: bytes) -> None:
    stream = io.BytesIO(broken + GOOD)
    assert read_frame(stream) == {}
    assert read_frame(stream) is END


def test_leading_zeros_count_for_nothing() -> None:
    assert read_frame(io.BytesIO(b"Content-Length: " + b"0" * 5_000 + b"2\r\n\r\n{}")) == {}


@pytest.mark.parametrize("length", [b"9" * 5_000, b"99999999999999999999", b"268435457"], ids=len)
def test_a_message_that_is_too_long_is_not_left_out_in_silence(length: bytes) -> None:
    stream = io.BytesIO(b"Content-Length: " + length + b"\r\n\r\n" + GOOD)
    assert isinstance(read_frame(stream), BrokenBody)
    assert read_frame(stream) == {}


DEEP = b"[" * 100_000
_ID = b'{"jsonrpc": "2.0", "id": %s, "method": "a", "params": %s}'


@pytest.mark.parametrize(
    ("body", "id"),
    [
        (_ID % (b"5", DEEP + b"]" * 100_000), 5),
        (_ID % (b"5", b"9" * 5_000), 5),
        (_ID % (b"5", b'"\xff"'), 5),
        (_ID % (b"5", b"[1,"), 5),
        (_ID % (b'"a\\" \\ud800 {"', DEEP), 'a" \ud800 {'),
        (b'{"params": {"id": 3, "b": [{"id": 4}], "id": "}"}, "method": "id", "id" : -5 , "c": ' + DEEP, -5),
        (b'{"params": {"id": 3}, "method": "id", "a": ' + DEEP, None),
        (_ID % (b"9" * 5_000, b"[]"), None),
        (_ID % (b"1.5", DEEP), None),
        (_ID % (b"[5]", DEEP), None),
        (_ID % (b'"\xff"', b"[]"), None),
        (b'[{"id": 5, "a": ' + DEEP, None),
        (b'{"a": ' + b'[{"a": ' * 1_000_000 + b'"id": 5, ', None),
        (b"", None),
    ],
    ids=lambda value: str(value)[:60] if isinstance(value, bytes) else repr(value)[:20],
)
def test_the_id_of_a_request_that_cannot_be_read_is_told(body: bytes, id: object) -> None:
    broken = read_message(body)
    assert isinstance(broken, BrokenBody) and broken.id == id


def test_half_of_a_pair_is_replaced_but_not_in_the_id() -> None:
    said = {"id": "\ud800", "\udfff": ["a\ud83d", "\U0001f600"]}
    read = read_message(json.dumps(said).encode())
    assert read == {"id": "\ud800", "?": ["a?", "\U0001f600"]}
    as_bytes = json.dumps(said, ensure_ascii=False).encode("utf-8", "surrogatepass")
    assert read_message(as_bytes) == read
    assert read_message(as_bytes, clean=False) == said
    taken_back = {"method": "$/cancelRequest", "params": {"id": "\ud800"}}
    assert read_message(json.dumps(taken_back).encode()) == taken_back
