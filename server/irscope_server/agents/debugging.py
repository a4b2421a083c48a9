"""A debug session for one question: breakpoints, steps, and what there is at the last stop."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from irscope_server.agents.adapter import (
    MOST_ASKED,
    MOST_STEPS,
    Adapter,
    adapter_of,
    around,
    place,
    set_breakpoints,
    stops,
)  # fmt: skip
from irscope_server.agents.answers import ToolFailure
from irscope_server.agents.commands import ADAPTER

STEPS = ("next", "stepIn", "stepOut", "stepBack", "continue", "reverseContinue")
_SECONDS = 60.0
_TOLD_ELSEWHERE = ("Run", "Compile")
"""Scopes that are the same at every stop."""


def refuse_wrong(
    steps: Sequence[str], known: Sequence[str], breakpoints: Sequence[str], evaluate: Sequence[str], why: str = ""
) -> None:
    """Raises ToolFailure for steps that there are not, and for too much of anything."""
    if unknown := [step for step in steps if step not in known]:
        raise ToolFailure(f"Unknown step: {unknown[0][:40]}. The steps are: {', '.join(known)}.{why}")
    if len(steps) > MOST_STEPS or len(evaluate) > MOST_ASKED or len(breakpoints) > MOST_ASKED:
        raise ToolFailure(f"At most {MOST_STEPS} steps, {MOST_ASKED} breakpoints and {MOST_ASKED} expressions.")


class Debugging:
    """Sessions on the runs of one store, each in an adapter process of its own."""

    def __init__(self, store: str) -> None:
        self._store = store

    async def session(
        self, run: str, program: str, breakpoints: Sequence[str], steps: Sequence[str], evaluate: Sequence[str]
    ) -> str:
        """What a session shows.  Raises ToolFailure."""
        refuse_wrong(steps, STEPS, breakpoints, evaluate)
        wanted = {"store": self._store, "run": run, "program": program}
        async with adapter_of(ADAPTER) as (adapter, _):
            try:
                return await asyncio.wait_for(_shown(adapter, wanted, breakpoints, steps, evaluate), _SECONDS)
            except asyncio.TimeoutError:
                raise ToolFailure(
                    f"The session took longer than {_SECONDS:g} s. Set a breakpoint that is nearer."
                ) from None


async def _shown(
    adapter: Adapter, wanted: dict[str, str], breakpoints: Sequence[str], steps: Sequence[str], evaluate: Sequence[str]
) -> str:
    able = await adapter.ask("initialize", adapterID="irscope")
    filters = able.get("exceptionBreakpointFilters", [])
    # Filters are no breakpoints to the adapter: without this it would stop at the beginning.
    stop_on = {"stopOn": "none"} if any(one.get("filter") in breakpoints for one in filters) else {}
    await adapter.ask("attach", **{name: value for name, value in wanted.items() if value}, **stop_on)
    lines, _ = await set_breakpoints(adapter, breakpoints, filters)
    await adapter.ask("configurationDone")
    end = "the end of the run"
    async for step, stop, thread in stops(adapter, steps):
        at = end if stop is None else await place(adapter, stop, thread)
        lines.append(f"{step}: {at}" if step else at)
    if stop is not None:
        lines += await around(adapter, thread, evaluate, _TOLD_ELSEWHERE)
    return "\n".join(lines)
