"""Bodies of messages, as JSON-RPC and the Debug Adapter Protocol have them: what one says, or why it says nothing.

A client that sent a request waits for its answer, also where the request cannot be read.  So its ID is looked for in any case.
"""

from __future__ import annotations

import json
import re
from typing import Any

from irscope.protocol.plain import encodable

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
INVALID_PARAMS = -32602

LARGEST_BODY = 256 * 1024 * 1024
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]")
"""Half of a pair, escaped or as bytes.  A whole pair is escaped like this, too."""
_STRING = rb'"(?:[^"\\]|\\.)*"'
_STEP = re.compile(_STRING + rb"|[\[{]+|[\]}]+", re.DOTALL)
_VALUE = re.compile(rb"\s*:\s*(" + _STRING + rb"|-?\d{1,400})\s*[,}]", re.DOTALL)
_LOOKED_THROUGH = 1 << 20
"""Bytes of a broken body in which its ID is looked for: they are gone through one by one."""


class BrokenBody(Exception):
    """A body that is not JSON, or more than can be read.

    ``id`` is that of the request in it, if it can be told.
    """

    def __init__(self, why: str, id: str | int | None = None) -> None:
        super().__init__(why)
        self.id = id


def read_message(body: bytes, id_key: str = "id", *, clean: bool = True) -> Any:
    """What a body says, or a `BrokenBody`.

    Args:
        id_key: Where a request has its ID.
        clean: Whether each lone surrogate becomes a question mark, except in the ID, by which the sender knows the
            answer.  JSON can hold one, while no file, pipe or database takes it.
    """
    try:
        message = json.loads(body)
        if not clean or not _SURROGATE.search(body) or _takes_back(message):
            return message
        encoded = encodable(message)
    except (ValueError, RecursionError) as error:  # also a number of thousands of digits, which `int` refuses
        return BrokenBody(f"not JSON that can be read: {error}", _id_in_broken(body, id_key.encode()))
    if isinstance(message, dict) and id_key in message:
        encoded[id_key] = message[id_key]
    return encoded


def _takes_back(message: Any) -> bool:
    """Whether there is nothing in a message but the ID of a request that is cancelled."""
    return isinstance(message, dict) and message.get("method") == "$/cancelRequest"


def _id_in_broken(body: bytes, key: bytes) -> str | int | None:
    """The ID at the first level, if everything before it can be told apart."""
    depth = 0
    for step in _STEP.finditer(body, 0, _LOOKED_THROUGH):
        token = step[0]
        if token[:1] in b"[{":
            depth += len(token)
        elif token[:1] in b"]}":
            depth -= len(token)
        elif depth == 1 and token == b'"%s"' % key and (value := _VALUE.match(body, step.end())):
            try:
                found = json.loads(value[1])
            except ValueError:
                return None
            return found if isinstance(found, (str, int)) else None
    return None


def id_in(message: Any) -> str | int | None:
    """The ID of a JSON-RPC message; None if it has none that is valid."""
    found = message.get("id") if isinstance(message, dict) else None
    return found if isinstance(found, (str, int)) and not isinstance(found, bool) else None


def wrong_shape(message: Any) -> str:
    """What is wrong with a message as JSON-RPC 2.0 has it; empty if nothing is.  The rest depends on its method."""
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return "not a JSON-RPC 2.0 message"
    if "method" not in message:
        is_answer = "id" in message and ("result" in message or "error" in message)
        return "" if is_answer else "a message needs a 'method', or an 'id' with a 'result' or an 'error'"
    if not isinstance(message["method"], str):
        return "'method' must be a text"
    if "result" in message or "error" in message:
        return "a message with a 'method' cannot have a 'result' or an 'error'"
    if "id" in message and id_in(message) is None:
        return "'id' must be a text or a whole number"
    return ""
