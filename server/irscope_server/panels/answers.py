"""How the panels' requests are answered: off the event loop, as JSON, and once for a run that has ended."""

from __future__ import annotations

import json
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from irscope.pipelines.registry import role_of
from irscope.protocol import Compile, CompileOutcome, OutcomeKind, Report
from irscope.store.store import Store
from irscope.vocabulary.stages import Role

from irscope_server.base.archive import Archive
from irscope_server.base.context import ReadContext
from irscope_server.base.limits import collecting_nothing
from irscope_server.base.messages import Encoded
from irscope_server.base.results import Place
from irscope_server.base.wire import to_wire
from irscope_server.stages.tree import UriOf

_MOST_BYTES = 16_000_000
"""The most bytes of the answers that are kept."""

_kept: weakref.WeakKeyDictionary[Archive, OrderedDict[Hashable, Encoded]] = weakref.WeakKeyDictionary()


@dataclass(frozen=True)
class CompileChoice:
    """A compile, for the list in which a panel lets the user choose one."""

    id: str
    function: str
    place: Place
    outcome: str
    graph_ops: int
    seconds: float


async def answer(context: ReadContext, key: Hashable, run: str, read: Callable[[Store, Report], Any]) -> Encoded:
    """What ``read`` makes of a run.  Raises LookupError for an unknown run, and what ``read`` raises.

    Args:
        key: Names the question; a run that has ended gives the same answer to it again.
    """
    kept = _kept.setdefault(context.archive, OrderedDict())
    if (known := kept.get(key)) is not None:
        kept.move_to_end(key)
        return known
    report = await context.archive.report(run)

    def encoded(store: Store) -> Encoded:
        with collecting_nothing():
            return Encoded(json.dumps(to_wire(read(store, report))))

    found = await context.archive.ask_aside(encoded)
    if report.outcome.kind is not OutcomeKind.CANCELLED:  # which is also what a run that goes on looks like
        kept[key] = found
        while len(kept) > 1 and sum(len(one.json) for one in kept.values()) > _MOST_BYTES:
            kept.popitem(last=False)
    return found


def compile_named(report: Report, id: str | None, role: Role | None = None) -> Compile | None:
    """A compile by its id; if none is named, the one with the most operations, of those with such a stage if there are
    any.  Raises LookupError."""
    if id is None:
        return max(report.compiles, key=lambda one: (_has(one, role), bool(one.stages), one.graph_ops), default=None)
    for compile in report.compiles:
        if compile.id == id:
            return compile
    raise LookupError(f"Run {report.run} has no compile {id}.")


def compile_choices(report: Report, uri_of: UriOf, role: Role | None = None) -> tuple[CompileChoice, ...]:
    """The compiles of a run; with a role, those that have such a stage."""
    return tuple(
        CompileChoice(
            one.id,
            one.title,
            Place(place_uri(uri_of, one.file), max(0, one.line - 1)),
            one.outcome.value,
            one.graph_ops,
            one.seconds,
        )
        for one in report.compiles
        if _has(one, role)
    )


def _has(compile: Compile, role: Role | None) -> bool:
    return role is None or any(role_of(ref.name) is role for ref in compile.stages)


def why_empty(report: Report, what: str, compile: Compile | None = None) -> str:
    """Why a run, or a compile of it, has none of something, and what to do; as sentences."""
    if report.outcome.kind is OutcomeKind.CANCELLED:  # also one that goes on
        return f"{report.outcome.message} It has {f'no {what}' if report.compiles else 'compiled nothing'} so far."
    if not report.compiles:
        return f"Nothing was compiled in this run. {report.outcome.message}".strip()
    subject = "This run" if compile is None else f"Compile {compile.id}"
    if any(_has(one, Role.CODE) for one in report.compiles):
        is_plain = compile is not None and compile.outcome is CompileOutcome.SKIPPED
        why = "it runs as plain Python" if is_plain else "it ended before this stage"
        return f"{subject} has no {what}: {why}."
    why = "the run used the fast lane, or ended before this stage"
    return f"{subject} has no {what}: {why}. Run the whole pipeline to see it."


def profiled_run(run: str, script: str, store: Store) -> str | None:
    """The run itself if it was profiled, else the newest profiled one of its script; None if there is none."""
    return run if store.profile(run) is not None else store.newest_profiled(script)


def place_uri(uri_of: UriOf, file: str) -> str:
    """The URI of a file; empty if the file is not known."""
    return uri_of(file) if file else ""
