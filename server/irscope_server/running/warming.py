"""Which workers there are: started for files that are open, stopped when no file needs them or they are idle for long."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence

from irscope_server.base.context import EditorContext
from irscope_server.base.settings import Settings
from irscope_server.running.plans import Plan
from irscope_server.running.workers import Workers


class Warming:
    """Keeps the workers that open files need.  Belongs to the event loop, but for `changed`.

    Args:
        workers: The workers; this takes over what is called when one of them changes.
        enabled: Whether runs may be in workers at all.
        tell: Called when a worker is in another state.
    """

    def __init__(self, editor: EditorContext, workers: Workers, enabled: bool, tell: Callable[[], None]) -> None:
        self._editor, self._workers, self._enabled, self._tell = editor, workers, enabled, tell
        workers.changed = self.changed
        self._loop: asyncio.AbstractEventLoop | None = None
        self._sweeper: asyncio.TimerHandle | None = None

    def warm(self, settings: Settings, plan: Plan | None) -> None:
        """Starts the worker in which the next run will be, if it may be and is not there."""
        editor, workers = self._editor, self._workers
        self._loop = asyncio.get_running_loop()
        workers.idle_seconds = 60 * editor.settings.worker_idle_minutes
        workers.layers = editor.settings.worker_layers
        if not (self._enabled and editor.trusted and settings.worker_enabled):
            return
        if plan is None:
            workers.warm(settings.interpreter, settings.env or None)
        else:
            workers.warm(plan.python, plan.env or None, plan.cwd)

    def keep_only(self, plans: Sequence[Plan]) -> None:
        """Lets go of workers that no plan needs now, and starts those that are needed."""
        workers = self._workers
        workers.keep_only((one.python, one.env, one.cwd) for one in plans if one.settings.worker_enabled)
        for one in plans:
            self.warm(one.settings, one)
        workers.idle_seconds = 60 * self._editor.settings.worker_idle_minutes
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
        again = self._workers.sweep()
        self._sweeper = None if again is None else asyncio.get_running_loop().call_later(again, self._sweep)
