"""A debug adapter in its own process, for one question: asks it, waits for its stops, and tells what there is at one."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import Any

from irscope_server.agents.answers import ToolFailure, marked
from irscope_server.agents.processes import started

MOST_STEPS, MOST_ASKED = 50, 20
_FRAMES, _VARIABLES = 8, 16
_VALUE = 160
"""Characters of a variable's value."""
_PRINTED = 2000
"""Characters that are kept of the end of what a program printed."""
_LONGEST_MESSAGE = 16_000_000

Message = dict[str, Any]


class AdapterEnded(ToolFailure):
    """The adapter's process has ended, or speaks something else."""


class Refused(ToolFailure):
    """The adapter has refused a request; `reason` is its sentence, which may quote the program."""

    def __init__(self, command: str, reason: str) -> None:
        self.reason = reason[:1000]
        super().__init__(f"The debugger refused {command}.\n{marked(self.reason)}")


@contextlib.asynccontextmanager
async def adapter_of(
    command: Sequence[str], environment: Mapping[str, str] | None = None
) -> AsyncIterator[tuple[Adapter, asyncio.subprocess.Process]]:
    """An adapter, and its process, which is ended with everything below it.  Raises OSError if it cannot be started."""
    variables = {**os.environ, **(environment or {})}
    async with started(command, variables, asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL) as process:
        yield Adapter(process), process


class Adapter:
    """One adapter process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None and process.stdout is not None
        self._in, self._out = process.stdin, process.stdout
        self._number = 0
        self._events: list[Message] = []
        self._answers: dict[int, Message] = {}
        self.printed = ""
        """The end of what the program printed."""

    async def ask(self, command: str, **arguments: Any) -> Message:
        """The body of the answer.  Raises ToolFailure with the adapter's sentence."""
        return await self.answer(await self.send(command, **arguments), command)

    async def send(self, command: str, **arguments: Any) -> int:
        """Sends a request; returns its number."""
        self._number += 1
        body = json.dumps({"seq": self._number, "type": "request", "command": command, "arguments": arguments}).encode()
        self._in.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        with contextlib.suppress(ConnectionError):  # reading says that it has ended
            await self._in.drain()
        return self._number

    async def answer(self, number: int, command: str) -> Message:
        """The body of the answer to a request.  Raises ToolFailure."""
        while number not in self._answers:
            self._take(await self._next())
        message = self._answers.pop(number)
        if not message.get("success"):
            raise Refused(command, str(message.get("message", "")))
        return dict(message.get("body") or {})

    async def until(self, *events: str) -> Message | None:
        """The next of these events; None if the session has ended."""
        while True:
            while not self._events:
                self._take(await self._next())
            message = self._events.pop(0)
            if message["event"] in events:
                return dict(message.get("body") or {})
            if message["event"] in ("terminated", "exited"):
                return None

    def _take(self, message: Message) -> None:
        if message.get("type") == "response":
            self._answers[int(message.get("request_seq", 0))] = message
        elif message.get("event") == "output":
            body = message.get("body") or {}
            if body.get("category") in ("stdout", "stderr"):
                self.printed = (self.printed + str(body.get("output", "")))[-_PRINTED:]
        elif message.get("type") == "event" and isinstance(message.get("event"), str):
            self._events.append(message)

    async def _next(self) -> Message:
        try:
            header = (await self._out.readuntil(b"\r\n\r\n")).decode("ascii", "replace")
            match = re.match(r"Content-Length: (\d{1,9})", header)
            wanted = int(match[1]) if match else _LONGEST_MESSAGE
            message = json.loads(await self._out.readexactly(wanted)) if wanted < _LONGEST_MESSAGE else None
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            message = None
        if not isinstance(message, dict):
            raise AdapterEnded("The debug adapter ended. Is this a run of the deep lane?")
        return message


async def stops(adapter: Adapter, steps: Sequence[str]) -> AsyncIterator[tuple[str, Message | None, int]]:
    """The first stop and the one after each step: the step (empty before the first), the stop and its thread.

    The last stop is None if the session has ended; then no other step is made.  Raises ToolFailure.
    """
    thread, step = 1, ""
    for following in [*steps, None]:
        stop = await adapter.until("stopped")
        number = (stop or {}).get("threadId", thread)
        thread = number if isinstance(number, int) else thread
        yield step, stop, thread
        if stop is None or following is None:
            return
        step = following
        await adapter.ask(step, threadId=thread)


async def set_breakpoints(
    adapter: Adapter, breakpoints: Sequence[str], filters: Sequence[Message], always: Sequence[str] = ()
) -> tuple[list[str], dict[str, str]]:
    """Sets them: ``FILE:LINE`` or the name of a function, each perhaps with `` if CONDITION``; or the name of a filter.

    Args:
        filters: What the adapter can stop at beside places: kinds of findings or exceptions.
        always: Filters that are on in any case.

    Returns what to say of those that cannot be reached or were moved, and of each ``FILE:LINE`` where it is now, with the
    full path of the file.
    """
    kinds = {stop.get("filter") for stop in filters}
    chosen = [*always, *(breakpoint for breakpoint in breakpoints if breakpoint in kinds)]
    if chosen:
        await adapter.ask("setExceptionBreakpoints", filters=chosen)
    by_file, functions = _places_of([breakpoint for breakpoint in breakpoints if breakpoint not in kinds])
    said, places = [], {}
    for file, points in by_file.items():
        answer = await adapter.ask("setBreakpoints", source={"path": file}, breakpoints=[point for _, point in points])
        for (asked, point), made in zip(points, answer.get("breakpoints", ()), strict=False):
            line = made.get("line", point["line"])
            places[asked] = f"{os.path.realpath(file)}:{line}"
            why = made.get("message") or (f"moved to line {line}" if line != point["line"] else "")
            said += [f"breakpoint {asked}: {why}"] if why else []
    if functions:
        answer = await adapter.ask("setFunctionBreakpoints", breakpoints=[point for _, point in functions])
        for (asked, _), made in zip(functions, answer.get("breakpoints", ()), strict=False):
            said += [f"breakpoint {asked}: {made['message']}"] if made.get("message") else []
    return said, places


_Asked = list[tuple[str, Message]]
"""What was asked for, and how the protocol says that."""


def _places_of(breakpoints: Sequence[str]) -> tuple[dict[str, _Asked], _Asked]:
    """The breakpoints in lines, by file, and those of functions."""
    by_file: dict[str, _Asked] = {}
    functions: _Asked = []
    for breakpoint in breakpoints:
        asked, _, condition = breakpoint.partition(" if ")
        only = {"condition": condition} if condition else {}
        match = re.fullmatch(r"(.+):(\d{1,9})", asked)
        if match:
            file = os.path.abspath(os.path.expanduser(match[1]))
            by_file.setdefault(file, []).append((asked, {"line": int(match[2]), **only}))
        else:
            functions.append((asked, {"name": asked, **only}))
    return by_file, functions


async def place(adapter: Adapter, stop: Message, thread: int) -> str:
    """Why it stopped, and where."""
    frames = (await adapter.ask("stackTrace", threadId=thread, levels=1)).get("stackFrames", [])
    where = frame(frames[0]) if frames else ""
    return f"{stop.get('description') or stop.get('reason', '')}: {where}"


def frame(one: Message) -> str:
    """A frame in a line."""
    source = one.get("source") or {}
    name = source.get("name") or os.path.basename(str(source.get("path", "")))
    return f"{one.get('name', '')} at {name}:{one.get('line', '')}"


async def around(adapter: Adapter, thread: int, evaluate: Sequence[str], without: Collection[str]) -> list[str]:
    """Stack, variables and expressions at a stop.

    Args:
        without: Names of scopes and variables that are left out.
    """
    frames = (await adapter.ask("stackTrace", threadId=thread, levels=_FRAMES)).get("stackFrames", [])
    lines = ["stack:", *(f"  {frame(one)}" for one in frames)]
    if not frames:
        return lines
    for expression in evaluate:
        try:
            answer = await adapter.ask("evaluate", expression=expression, frameId=frames[0]["id"], context="watch")
            result = str(answer.get("result", ""))
        except Refused as refused:
            result = f"(not evaluated) {refused.reason.strip()}"
        lines.append(f"{expression} = {result[:2000]}")
    for scope in (await adapter.ask("scopes", frameId=frames[0]["id"])).get("scopes", []):
        if scope.get("expensive") or scope["name"] in without:
            continue
        found = await adapter.ask("variables", variablesReference=scope["variablesReference"])
        variables = [each for each in found.get("variables", []) if each["name"] not in without]
        lines.append(f"{scope['name']}:")
        lines += [f"  {each['name']} = {_in_a_line(str(each['value']))}" for each in variables[:_VARIABLES]]
        if len(variables) > _VARIABLES:
            lines.append(f"  and {len(variables) - _VARIABLES} more")
    return lines


def _in_a_line(value: str) -> str:
    """A value, cut off.  That of a tensor or a module has several lines, which would look like variables."""
    return re.sub(r"\s*\n\s*", " ", value[: 2 * _VALUE])[:_VALUE]
