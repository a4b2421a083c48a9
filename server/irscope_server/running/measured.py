"""Measured time of the runs that are shown: the newest profiled run of what runs each open file, in memory."""

from __future__ import annotations

import functools
import os
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from irscope.profiling.changes import stored_profile
from irscope.profiling.profile import MeasuredKernel, MeasuredLine, Profile
from irscope.protocol import Lane
from irscope.store.store import Store, StoreError

from irscope_server.base.context import ReadContext
from irscope_server.base.texts import FileKey, by_file, lines_by_file, script_key
from irscope_server.running.plans import Planner
from irscope_server.running.results import Ended, by_origin

_MOST = 12
"""Profiles that are kept in memory."""


@dataclass(frozen=True)
class Measured:
    """A profiled run, with what of its profile belongs to which line."""

    ended: Ended
    profile: Profile

    @functools.cached_property
    def lines(self) -> Mapping[FileKey, Sequence[MeasuredLine]]:
        """The measured lines of each file."""
        return by_file(self.profile.lines)

    @functools.cached_property
    def kernels(self) -> Mapping[FileKey, Mapping[int, Sequence[MeasuredKernel]]]:
        """The measured kernels that came from each line (1-based) of each file."""
        return by_origin(self.profile.kernels)

    def tells_of(self, key: FileKey) -> bool:
        """Whether a file has measured time or compiled functions."""
        return key in self.lines or key in self.ended.compiles


class Profiles:
    """Reads them from the store once, off the event loop; a run that ends brings its own."""

    def __init__(self, context: ReadContext, planner: Planner) -> None:
        self._context, self._planner = context, planner
        self._measured: OrderedDict[tuple[str, str], Measured | None] = OrderedDict()
        """By the store's file and what the store calls the script."""

    def remember(self, script: str, ended: Ended) -> None:
        """A run that has just been profiled, of what the store calls `script`."""
        if ended.profile is not None:
            self._keep((self._context.archive.path, script), Measured(ended, ended.profile))

    def forget(self, script: str) -> None:
        """The store has a newer one: it is read when it is asked for."""
        self._measured.pop((self._context.archive.path, script), None)

    async def touching(self, document: FileKey) -> Measured | None:
        """The newest profiled run of what runs a document, else a known one that has times of it."""
        key = script_key(document)
        plan = self._planner.plans.get(key)
        script = plan.entry.stored_script if plan else key
        name = (self._context.archive.path, script)
        if name not in self._measured:
            self._keep(name, await self._read(script))
        own = self._measured[name]
        if own is not None and own.tells_of(key):
            return own
        others = (measured for measured in reversed(self._measured.values()) if measured is not None)
        return next((measured for measured in others if measured.tells_of(key)), None)

    def _keep(self, name: tuple[str, str], measured: Measured | None) -> None:
        self._measured[name] = measured
        self._measured.move_to_end(name)
        while len(self._measured) > _MOST:
            self._measured.popitem(last=False)

    async def _read(self, script: str) -> Measured | None:
        def read(store: Store) -> Measured | None:
            run = store.newest_profiled(script)
            profile = stored_profile(store, run) if run is not None else None
            if run is None or profile is None:
                return None
            texts = lines_by_file(store.sources(run))
            ended = Ended(script, Lane.DEEP, store.source_of(run), store.report(run), texts, profile=profile)
            return Measured(ended, profile)

        if not os.path.exists(self._context.archive.path):
            return None  # a look at a file makes no store
        try:
            return await self._context.archive.ask(read)
        except (StoreError, LookupError):  # an unreadable store says so elsewhere
            return None
