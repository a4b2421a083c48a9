"""A debug session for one question: breakpoints, steps, and what there is at the last stop."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Sequence
from typing import Any

from irscope.system.ending import end_tree

from irscope_server.agents.answers import ToolFailure, marked
from irscope_server.agents.commands import ADAPTER

STEPS = ("next", "stepIn", "stepOut", "stepBack", "continue", "reverseContinue")
_SECONDS = 60.0
_MOST_STEPS = 50
_MOST_ASKED = 20
_FRAMES, _VARIABLES = 8, 16
_TOLD_ELSEWHERE = ("Run", "Compile")
"""Scopes that are the same at every stop."""
_VALUE = 160
"""Characters of a variable's value."""

Message = dict[str, Any]


class Debugging:
    """Sessions on one store, each in an adapter process of its own."""

    def __init__(self, store: str) -> None:
        self._store = store

    async def session(
        self, run: str, program: str, breakpoints: Sequence[str], steps: Sequence[str], evaluate: Sequence[str]
    ) -> str:
        """What a session shows.  Raises ToolFailure."""
        if unknown := [step for step in steps if step not in STEPS]:
            raise ToolFailure(f"Unknown step: {unknown[0][:40]}. The steps are: {', '.join(STEPS)}.")
        if len(steps) > _MOST_STEPS or len(evaluate) > _MOST_ASKED or len(breakpoints) > _MOST_ASKED:
            raise ToolFailure(f"At most {_MOST_STEPS} steps, {_MOST_ASKED} breakpoints and {_MOST_ASKED} expressions.")
        process = await asyncio.create_subprocess_exec(
            *ADAPTER, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        try:
            adapter = _Adapter(process)
            wanted = {"store": self._store, "run": run, "program": program}
            return await asyncio.wait_for(_shown(adapter, wanted, breakpoints, steps, evaluate), _SECONDS)
        except asyncio.TimeoutError:
            raise ToolFailure(
                f"The session took longer than {_SECONDS:g} s. Set a breakpoint that is nearer."
            ) from None
        finally:
            if process.returncode is None:
                end_tree(process.pid)
                await process.wait()


class _Adapter:
    """One adapter process: asks it, and waits for its stops."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None and process.stdout is not None
        self._in, self._out = process.stdin, process.stdout
        self._number = 0
        self._events: list[Message] = []

    async def ask(self, command: str, **arguments: Any) -> Message:
        """The body of the answer.  Raises ToolFailure with the adapter's sentence."""
        self._number += 1
        body = json.dumps({"seq": self._number, "type": "request", "command": command, "arguments": arguments}).encode()
        self._in.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        await self._in.drain()
        while True:
            message = await self._next()
            if message["type"] == "event":
                self._events.append(message)
            elif message.get("request_seq") == self._number:
                if not message["success"]:
                    raise ToolFailure(
                        f"The debugger refused {command}.\n{marked(str(message.get('message', ''))[:1000])}"
                    )
                return dict(message.get("body") or {})

    async def stop(self) -> Message | None:
        """The next stop; None if the session has ended."""
        while True:
            message = self._events.pop(0) if self._events else await self._next()
            if message["type"] == "event" and message["event"] == "stopped":
                return dict(message["body"])
            if message["type"] == "event" and message["event"] in ("terminated", "exited"):
                return None

    async def _next(self) -> Message:
        try:
            header = (await self._out.readuntil(b"\r\n\r\n")).decode("ascii", "replace")
            match = re.match(r"Content-Length: (\d{1,9})", header)
            message = json.loads(await self._out.readexactly(int(match[1]))) if match else None
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            message = None
        if not isinstance(message, dict):
            raise ToolFailure("The debug adapter ended. Is this a run of the deep lane?")
        return message


async def _shown(
    adapter: _Adapter, wanted: dict[str, str], breakpoints: Sequence[str], steps: Sequence[str], evaluate: Sequence[str]
) -> str:
    await adapter.ask("initialize", adapterID="irscope")
    await adapter.ask("attach", **{name: value for name, value in wanted.items() if value})
    lines = await _set(adapter, breakpoints)
    await adapter.ask("configurationDone")
    stop = await adapter.stop()
    thread = _thread(stop, 1)
    lines.append(await _place(adapter, stop, thread))
    for step in steps:
        if stop is None:
            break
        await adapter.ask(step, threadId=thread)
        stop = await adapter.stop()
        thread = _thread(stop, thread)
        lines.append(f"{step}: {await _place(adapter, stop, thread)}")
    if stop is not None:
        lines += await _around(adapter, thread, evaluate)
    return "\n".join(lines)


def _thread(stop: Message | None, before: int) -> int:
    number = (stop or {}).get("threadId", before)
    return number if isinstance(number, int) else before


async def _set(adapter: _Adapter, breakpoints: Sequence[str]) -> list[str]:
    """Sets them; returns what to say of those that cannot be reached."""
    by_file: dict[str, list[int]] = {}
    functions: list[str] = []
    for each in breakpoints:
        match = re.fullmatch(r"(.+):(\d{1,9})", each)
        if match:
            by_file.setdefault(os.path.abspath(match[1]), []).append(int(match[2]))
        else:
            functions.append(each)
    answers = [
        (file, await adapter.ask("setBreakpoints", source={"path": file}, breakpoints=[{"line": at} for at in lines]))
        for file, lines in by_file.items()
    ]
    if functions:
        named = await adapter.ask("setFunctionBreakpoints", breakpoints=[{"name": name} for name in functions])
        answers.append((", ".join(functions), named))
    return [
        f"breakpoint {name}: {point['message']}"
        for name, answer in answers for point in answer.get("breakpoints", ()) if point.get("message")
    ]  # fmt: skip


async def _place(adapter: _Adapter, stop: Message | None, thread: int) -> str:
    if stop is None:
        return "the end of the run"
    frames = (await adapter.ask("stackTrace", threadId=thread, levels=1)).get("stackFrames", [])
    where = _frame(frames[0]) if frames else ""
    return f"{stop.get('description') or stop.get('reason', '')}: {where}"


def _frame(frame: Message) -> str:
    source = frame.get("source") or {}
    return f"{frame.get('name', '')} at {source.get('name', '')}:{frame.get('line', '')}"


async def _around(adapter: _Adapter, thread: int, evaluate: Sequence[str]) -> list[str]:
    """Stack, variables and expressions at a stop."""
    frames = (await adapter.ask("stackTrace", threadId=thread, levels=_FRAMES)).get("stackFrames", [])
    lines = ["stack:", *(f"  {_frame(frame)}" for frame in frames)]
    if not frames:
        return lines
    for expression in evaluate:
        try:
            answer = await adapter.ask("evaluate", expression=expression, frameId=frames[0]["id"], context="watch")
            result = str(answer.get("result", ""))
        except ToolFailure as failure:
            result = str(failure)
        lines.append(f"{expression} = {result[:2000]}")
    for scope in (await adapter.ask("scopes", frameId=frames[0]["id"])).get("scopes", []):
        if scope.get("expensive") or scope["name"] in _TOLD_ELSEWHERE:
            continue
        found = await adapter.ask("variables", variablesReference=scope["variablesReference"])
        variables = found.get("variables", [])
        lines.append(f"{scope['name']}:")
        lines += [f"  {each['name']} = {str(each['value'])[:_VALUE]}" for each in variables[:_VARIABLES]]
        if len(variables) > _VARIABLES:
            lines.append(f"  and {len(variables) - _VARIABLES} more")
    return lines
