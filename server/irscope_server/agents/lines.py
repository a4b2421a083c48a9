"""The protocol's end of standard input and output: a message a line.

The library's own drops requests that it cannot read or that have another shape, and ends where it cannot write an answer.
Here every request is answered.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from irscope.protocol.plain import encodable
from mcp.server.mcpserver import MCPServer
from mcp.shared.message import SessionMessage
from mcp.types import ErrorData, JSONRPCError, JSONRPCMessage, jsonrpc_message_adapter
from pydantic import ValidationError

from irscope_server.base.bodies import (
    INVALID_REQUEST,
    LARGEST_BODY,
    PARSE_ERROR,
    BrokenBody,
    id_in,
    read_message,
    wrong_shape,
)
from irscope_server.base.transport import Writer, take_protocol_streams

_LONGEST_REFUSAL = 1000
_Answers = MemoryObjectSendStream[SessionMessage]
_Requests = MemoryObjectSendStream[SessionMessage | Exception]


class LineServer(MCPServer[Any]):
    """A server that answers every request."""

    async def run_stdio_async(self) -> None:
        """Serves until standard input ends."""
        streams = sys.stdin, sys.stdout
        try:
            await self._serve(*take_protocol_streams())
        finally:
            sys.stdin, sys.stdout = streams

    async def _serve(self, stdin: BinaryIO, stdout: BinaryIO) -> None:
        requests, incoming = anyio.create_memory_object_stream[SessionMessage | Exception]()
        answers, outgoing = anyio.create_memory_object_stream[SessionMessage]()
        library = self._lowlevel_server
        async with anyio.create_task_group() as group:
            group.start_soon(_read_all, stdin, requests, answers.clone())
            group.start_soon(_write_all, Writer(stdout), outgoing)
            await library.run(incoming, answers, library.create_initialization_options())


async def _read_all(stdin: BinaryIO, requests: _Requests, answers: _Answers) -> None:
    async with requests, answers:
        while line := await anyio.to_thread.run_sync(stdin.readline, LARGEST_BODY):
            for message in _messages(line):
                await (answers if isinstance(message, JSONRPCError) else requests).send(SessionMessage(message))


def _messages(line: bytes) -> Iterator[JSONRPCMessage]:
    """What a line says; in place of a request that the library would not answer, its refusal."""
    if not line.strip():
        return
    said = read_message(line, clean=False)
    if isinstance(said, list) and said:
        for part in said:  # who sent one of them waits for an answer to it
            yield from _message(part, "this protocol has no batches: send each request in its own line")
    else:
        yield from _message(said)


def _message(said: Any, wrong: str = "") -> Iterator[JSONRPCMessage]:
    if isinstance(said, BrokenBody):
        yield _refusal(said.id, PARSE_ERROR, str(said))
        return
    wrong = wrong or wrong_shape(said)
    try:
        if not wrong and encodable(said) != said:
            wrong = "the message has half of a surrogate pair, which is not a character"
        if not wrong:
            yield jsonrpc_message_adapter.validate_python(said, by_name=False)
            return
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, part['loc']))}: {part['msg']}" for part in error.errors())
    except RecursionError:
        wrong = "the message is nested too deeply"
    is_notification = isinstance(said, dict) and "method" in said and "id" not in said
    if not is_notification:
        yield _refusal(id_in(said), INVALID_REQUEST, wrong)


def _refusal(id: str | int | None, code: int, why: str) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=id, error=ErrorData(code=code, message=why[:_LONGEST_REFUSAL]))


async def _write_all(writer: Writer, answers: MemoryObjectReceiveStream[SessionMessage]) -> None:
    async with answers:
        async for answer in answers:
            await anyio.to_thread.run_sync(writer.write, line_of(answer.message))


def line_of(message: JSONRPCMessage) -> bytes:
    """An answer, in ASCII.  Its ID is as the client sent it, and the rest without lone surrogates, which some clients
    cannot
    read."""
    said = message.model_dump(by_alias=True, exclude_unset=True)
    clean = encodable(said)
    if "id" in said:
        clean["id"] = said["id"]
    return json.dumps(clean).encode() + b"\n"
