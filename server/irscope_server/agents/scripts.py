"""A debug session in the running script, by debugpy, as the editor's *Side by Side* has it beside the compilation.

The script runs from its beginning for each question, and is ended with it.  debugpy is that of the interpreter that
runs scripts.  Where a line of the script meets its compile is read from the newest stored run of the script.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from irscope_server.agents.adapter import (
    Adapter,
    AdapterEnded,
    Message,
    adapter_of,
    around,
    place,
    set_breakpoints,
    stops,
)  # fmt: skip
from irscope_server.agents.answers import ToolFailure, marked
from irscope_server.agents.commands import Commands, word
from irscope_server.agents.debugging import refuse_wrong
from irscope_server.agents.reports import short
from irscope_server.agents.trails import trail

STEPS = ("next", "stepIn", "stepOut", "continue")
_NO_DEBUGPY = 43
"""Exit code of the line below where the interpreter has no debugpy."""
# Not `-m`: that looks for modules in the working folder first, where anybody's file may lie.
_START = f"""\
import sys, runpy
sys.path[:1] = []
try:
    import debugpy
except ImportError:
    sys.exit({_NO_DEBUGPY})
sys.argv = ["debugpy.adapter"]
runpy.run_module("debugpy.adapter", run_name="__main__")"""
_QUIET = {"PYDEVD_DISABLE_FILE_VALIDATION": "1"}
_WITHOUT_COMPILE = {"TORCH_COMPILE_DISABLE": "1"}
_LEFT_OUT = ("Globals", "special variables", "function variables", "class variables")
_MOST_LINES = 6
"""The most lines of what a line became."""
_MOST_MISSED = 4
_PRINTED_LINES = 6


@dataclass
class _Seen:
    """What a session has come to.

    Args:
        missed: Lines with breakpoints at which it never stopped, as ``FILE:LINE``.
        at: ``FILE:LINE`` of the last stop.
    """

    lines: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    at: str = ""
    ended: bool = False


@dataclass(frozen=True)
class Wanted:
    """A question to the running script.

    Args:
        breakpoints: ``FILE:LINE`` or the name of a function, each perhaps with `` if CONDITION``; none: it stops at its
            first line.
        without_compile: Whether torch.compile does nothing, so that lines of compiled functions are reached.
    """

    program: str
    args: Sequence[str]
    breakpoints: Sequence[str]
    steps: Sequence[str]
    evaluate: Sequence[str]
    without_compile: bool
    seconds: int


@dataclass(frozen=True)
class Shown:
    """What a session shows, the run in which compiles were looked up, and whether the script ran to its end."""

    text: str
    run: str
    ended: bool


async def session(commands: Commands, wanted: Wanted) -> Shown:
    """What a session shows.  Raises ToolFailure."""
    commands.need_permission()
    back = " A running script cannot go back; the session of a stored run can: leave script out."
    refuse_wrong(wanted.steps, STEPS, wanted.breakpoints, wanted.evaluate, back)
    program = os.path.abspath(os.path.expanduser(word(wanted.program, "program")))
    if not os.path.isfile(program):
        raise ToolFailure('There is no such script. Give its path as program, as in program="train.py".')
    if any("\0" in arg for arg in wanted.args):
        raise ToolFailure("An argument has a zero byte.")
    seen = await _watched(commands, program, wanted)
    run = commands.run_of(program)
    lines = [*seen.lines, *await _met(commands, run, seen, wanted.without_compile)]
    return Shown("\n".join(lines), run, seen.ended)


async def _watched(commands: Commands, program: str, wanted: Wanted) -> _Seen:
    """Runs the script, and ends it."""
    seen = _Seen()
    try:
        async with adapter_of([commands.python, "-c", _START], _QUIET) as (adapter, process):
            try:
                await asyncio.wait_for(_follow(adapter, program, wanted, seen), wanted.seconds)
            except AdapterEnded:
                code = await asyncio.wait_for(process.wait(), 10)
                raise ToolFailure(_why_it_ended(commands.python, code)) from None
            except asyncio.TimeoutError:
                so_far = "\n".join(seen.lines)[-1500:]
                raise ToolFailure(
                    f"The script was ended after {wanted.seconds} s. Give more seconds, or a breakpoint that is reached sooner.\n"
                    f"{marked(so_far)}"
                ) from None
            finally:
                printed = adapter.printed.rstrip().split("\n")[-_PRINTED_LINES:]
                seen.lines += ["printed last:", *(f"  {line}" for line in printed)] if any(printed) else []
    except OSError as error:
        raise ToolFailure(f"The interpreter cannot be started.\n{marked(str(error)[:500])}") from None
    return seen


def _why_it_ended(python: str, code: int) -> str:
    if code == _NO_DEBUGPY:
        return (
            f"{python} has no debugpy, which debugs the running script. Ask the user to install it there: "
            f"{python} -m pip install debugpy. The compilation can be debugged without it: leave script out."
        )
    return f"debugpy ended, exit code {code}. Does {python} run the script at all? run(script=…) says."


async def _follow(adapter: Adapter, program: str, wanted: Wanted, seen: _Seen) -> None:
    """Goes through breakpoints and steps."""
    able = await adapter.ask(
        "initialize", adapterID="debugpy", linesStartAt1=True, columnsStartAt1=True, pathFormat="path"
    )
    launch = await adapter.send(
        "launch", type="python", request="launch", program=program, args=list(wanted.args), cwd=os.getcwd(),
        console="internalConsole", justMyCode=True, redirectOutput=True, subProcess=False,
        stopOnEntry=not wanted.breakpoints, env=_WITHOUT_COMPILE if wanted.without_compile else {},
    )  # fmt: skip
    if await adapter.until("initialized") is None:
        await adapter.answer(launch, "launch")
    filters = able.get("exceptionBreakpointFilters", [])
    said, places = await set_breakpoints(adapter, wanted.breakpoints, filters, ["uncaught"])
    seen.lines += said
    await adapter.ask("configurationDone")
    await adapter.answer(launch, "launch")
    reached = []
    async for step, stop, thread in stops(adapter, wanted.steps):
        reached.append(await _stopped(adapter, stop, thread, f"{step}: " if step else "", seen))
    if stop is not None:
        seen.lines += await around(adapter, thread, wanted.evaluate, _LEFT_OUT)
    seen.ended = stop is None
    seen.missed = [place for place in places.values() if place not in reached]


async def _stopped(adapter: Adapter, stop: Message | None, thread: int, step: str, seen: _Seen) -> str:
    """Notes a stop; returns its place."""
    if stop is None:
        seen.lines.append(f"{step}the end of the script")
        return ""
    seen.lines.append(f"{step}{await place(adapter, stop, thread)}")
    frames = (await adapter.ask("stackTrace", threadId=thread, levels=1)).get("stackFrames", [])
    path = (frames[0].get("source") or {}).get("path", "") if frames else ""
    seen.at = f"{os.path.realpath(path)}:{frames[0].get('line', 0)}" if path else ""
    if stop.get("reason") == "exception" and stop.get("text"):
        seen.lines.append(f"  {str(stop['text'])[:500]}")
    return seen.at


async def _met(commands: Commands, run: str, seen: _Seen, without_compile: bool) -> list[str]:
    """Where the script's lines meet their compile: of the last stop, and of breakpoints that were not reached."""
    asked = [*([seen.at] if seen.at and not seen.ended else []), *(seen.missed if seen.ended else ())]
    lines = []
    for one in asked[: _MOST_MISSED + 1]:
        name = short(one)
        became = await _became(commands, run, one) if run else []
        if one != seen.at or seen.ended:
            lines.append(f"breakpoint {name}: not reached. {_why_missed(became, without_compile)}".rstrip())
        if became:
            lines += [f"{name} in the compiles of run {run}:", *became]
            lines.append(f'-> debug(run="{run}", breakpoints=["{name}"]) steps through that.')
        elif run and one == seen.at:
            lines.append(f"{name}: nothing in run {run} came from this line.")
    if not run:
        lines.append("No run of this script is stored: run(script=…) first, and the line's compile is told here.")
    return lines


def _why_missed(became: list[str], without_compile: bool) -> str:
    if without_compile or not became:
        return ""
    return "Compiled code ran in place of this line; with without_compile=True it is reached."


async def _became(commands: Commands, run: str, at: str) -> list[str]:
    """Kernels and nodes of a line; none if nothing came from it."""
    try:
        found = await trail(commands, at, run)
    except ToolFailure:
        return []
    shown = [*found.kernels, *found.steps]
    return [*shown[:_MOST_LINES], *([f"  and {len(shown) - _MOST_LINES} more"] if len(shown) > _MOST_LINES else [])]
