"""Measured time of the runs that are shown: the newest profiled run of what runs each open file, in memory."""

from __future__ import annotations

import functools
import os
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

from irscope.profiling.changes import stored_profile
from irscope.profiling.profile import MeasuredKernel, MeasuredLine, Profile
from irscope.protocol import Lane
from irscope.store.store import Store, StoreError
from irscope.usercode.notebooks import notebook_of

from irscope_server.base.context import ReadContext
from irscope_server.base.texts import file_key, split_lines
from irscope_server.running.plans import Planner
from irscope_server.running.results import Ended

_MOST = 12
"""Profiles that are kept in memory."""


@dataclass(frozen=True)
class Measured:
    """A profiled run, with what of its profile belongs to which line."""

    ended: Ended
    profile: Profile

    @functools.cached_property
    def lines(self) -> Mapping[str, tuple[MeasuredLine, ...]]:
        """By `file_key`."""
        found: dict[str, list[MeasuredLine]] = {}
        for one in self.profile.lines:
            found.setdefault(file_key(one.file), []).append(one)
        return {key: tuple(rows) for key, rows in found.items()}

    @functools.cached_property
    def kernels(self) -> Mapping[tuple[str, int], tuple[MeasuredKernel, ...]]:
        """By `file_key` and line (1-based)."""
        found: dict[tuple[str, int], list[MeasuredKernel]] = {}
        for one in self.profile.kernels:
            for key in dict.fromkeys((file_key(origin.file), origin.line) for origin in one.origins):
                found.setdefault(key, []).append(one)
        return {key: tuple(rows) for key, rows in found.items()}

    def tells_of(self, key: str) -> bool:
        """Whether a file, by its `file_key`, has measured time or compiled functions."""
        return key in self.lines or any(file_key(one.file) == key for one in self.ended.report.compiles)


class Profiles:
    """Reads them from the store once, off the event loop; a run that ends brings its own."""

    def __init__(self, context: ReadContext, planner: Planner) -> None:
        self._context, self._planner = context, planner
        self._known: OrderedDict[tuple[str, str], Measured | None] = OrderedDict()

    def remember(self, script: str, ended: Ended) -> None:
        """A run that has just been profiled, of what the store calls `script`."""
        if ended.profile is not None:
            self._keep((self._context.archive.path, script), Measured(ended, ended.profile))

    def forget(self, script: str) -> None:
        """The store has a newer one: it is read when it is asked for."""
        self._known.pop((self._context.archive.path, script), None)

    async def touching(self, path: str) -> Measured | None:
        """The newest profiled run of what runs a file, else a known one that has times of the file."""
        path = notebook_of(path) or path
        key = file_key(path)
        plan = self._planner.plans.get(key)
        script = plan.entry.stored_script if plan else path
        name = (self._context.archive.path, script)
        if name not in self._known:
            self._keep(name, await self._read(script))
        own = self._known[name]
        if own is not None and own.tells_of(key):
            return own
        return next((one for one in reversed(self._known.values()) if one is not None and one.tells_of(key)), None)

    def _keep(self, name: tuple[str, str], found: Measured | None) -> None:
        self._known[name] = found
        self._known.move_to_end(name)
        while len(self._known) > _MOST:
            self._known.popitem(last=False)

    async def _read(self, script: str) -> Measured | None:
        def read(store: Store) -> Measured | None:
            run = store.newest_profiled(script)
            profile = stored_profile(store, run) if run is not None else None
            if run is None or profile is None:
                return None
            texts = {file_key(file): split_lines(text) for file, text in store.sources(run).items()}
            ended = Ended(script, Lane.DEEP, store.source_of(run), store.report(run), texts, profile=profile)
            return Measured(ended, profile)

        if not os.path.exists(self._context.archive.path):
            return None  # a look at a file makes no store
        try:
            return await self._context.archive.ask(read)
        except (StoreError, LookupError):  # an unreadable store says so elsewhere
            return None
