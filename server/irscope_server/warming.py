"""Which workers there are: started for files that are open, stopped when no file needs them or they are idle for long."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from irscope_server.plans import Plan
from irscope_server.settings import Settings

if TYPE_CHECKING:
    from irscope_server.server import IrscopeServer


class Warming:
    """Keeps the workers that open files need.  Belongs to the event loop, but for `changed`.

    Parameters
    ----------
    tell
        Called when a worker is in another state.
    """

    def __init__(self, server: IrscopeServer, tell: Callable[[], None]) -> None:
        self._server, self._tell = server, tell
        self._loop: asyncio.AbstractEventLoop | None = None
        self._sweeper: asyncio.TimerHandle | None = None

    def warm(self, settings: Settings, plan: Plan | None) -> None:
        """Starts the worker in which the next run will be, if it may be and is not there."""
        server = self._server
        self._loop = asyncio.get_running_loop()
        server.workers.idle_seconds = 60 * server.settings.worker_idle_minutes
        server.workers.layers = server.settings.worker_layers
        if not (server.has_workers and server.trusted and settings.worker_enabled):
            return
        if plan is None:
            server.workers.warm(settings.interpreter, settings.env or None)
        else:
            server.workers.warm(plan.python, plan.env or None, plan.cwd)

    def keep_only(self, plans: Sequence[Plan]) -> None:
        """Lets go of workers that no plan needs now, and starts those that are needed."""
        workers = self._server.workers
        workers.keep_only((one.python, one.env, one.cwd) for one in plans if one.settings.worker_enabled)
        for one in plans:
            self.warm(one.settings, one)
        workers.idle_seconds = 60 * self._server.settings.worker_idle_minutes
        self._sweep()

    def changed(self) -> None:
        """Called in any thread when a worker is in another state."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._changed)

    def _changed(self) -> None:
        self._tell()
        if self._sweeper is None:
            self._sweep()

    def _sweep(self) -> None:
        """Stops workers that have been idle for long, and comes back when the next one may be."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        again = self._server.workers.sweep()
        self._sweeper = None if again is None else asyncio.get_running_loop().call_later(again, self._sweep)
