"""How the panels' requests are answered: off the event loop, as JSON, and once for a run that has ended."""

from __future__ import annotations

import json
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Protocol

from irscope.protocol import Compile, OutcomeKind, Report
from irscope.store import Store

from irscope_server import words
from irscope_server.archive import Archive
from irscope_server.messages import Encoded
from irscope_server.texts import Texts
from irscope_server.tree import UriOf
from irscope_server.wire import Place, to_wire

_MOST_BYTES = 16_000_000
"""Of the answers that are kept."""

_kept: weakref.WeakKeyDictionary[Archive, OrderedDict[Hashable, Encoded]] = weakref.WeakKeyDictionary()


@dataclass(frozen=True)
class CompileChoice:
    id: str
    function: str
    place: Place
    outcome: str
    graph_ops: int
    seconds: float


class Reader(Protocol):
    """A server with a run store; the language server is one."""

    archive: Archive
    texts: Texts

    def path_of(self, uri: str) -> str | None:
        """The path of a ``file:`` URI; nothing for other schemes."""

    def uri_of(self, path: str) -> str:
        """The URI of a file, or of what the store calls a module or a test."""


async def answer(server: Reader, key: Hashable, run: str, read: Callable[[Store, Report], Any]) -> Encoded:
    """What ``read`` makes of a run.  Raises LookupError where there is no such run, and what ``read`` raises.

    Parameters
    ----------
    key
        Names the question; a run that has ended gives the same answer to it again.
    """
    kept = _kept.setdefault(server.archive, OrderedDict())
    if (known := kept.get(key)) is not None:
        kept.move_to_end(key)
        return known
    report = await server.archive.report(run)
    found = await server.archive.ask_aside(lambda store: Encoded(json.dumps(to_wire(read(store, report)))))
    if report.outcome.kind is not OutcomeKind.CANCELLED:  # which is also what a run that goes on looks like
        kept[key] = found
        while len(kept) > 1 and sum(len(one.json) for one in kept.values()) > _MOST_BYTES:
            kept.popitem(last=False)
    return found


def compile_named(report: Report, id: str | None) -> Compile | None:
    """A compile by its id; where none is named the one with the most operations.  Raises LookupError."""
    if id is None:
        return max(report.compiles, key=lambda one: (bool(one.stages), one.graph_ops), default=None)
    for compile in report.compiles:
        if compile.id == id:
            return compile
    raise LookupError(f"Run {report.run} has no compile {id}.")


def compile_choices(report: Report, uri_of: UriOf, stage: str = "") -> tuple[CompileChoice, ...]:
    """The compiles of a run; where a stage is named only those that have it."""
    return tuple(
        CompileChoice(
            one.id,
            words.function_title(one.function),
            Place(place_uri(uri_of, one.file), max(0, one.line - 1)),
            one.outcome.value,
            one.graph_ops,
            one.seconds,
        )
        for one in report.compiles
        if not stage or any(ref.name == stage for ref in one.stages)
    )


def why_empty(report: Report, what: str) -> str:
    """Why a run has none of something, and what to do; as sentences."""
    if not report.compiles:
        return f"Nothing was compiled in this run. {report.outcome.message}".strip()
    return (
        f"This run has no {what}: it was made in the fast lane, or died before it came to it. Run the file to get it."
    )


def place_uri(uri_of: UriOf, file: str) -> str:
    return uri_of(file) if file else ""
