"""What goes on, as a progress in the client's window, which can cancel a run."""

from __future__ import annotations

import asyncio
import logging
import uuid

from lsprotocol import types

from irscope_server.base.context import Client

log = logging.getLogger(__name__)

_PAUSE = 0.25
"""Seconds between two reports; more would only flicker."""


class Progress:
    """One progress: shown once the client has agreed to its token, never waited for by the work that it reports on."""

    cancellable = False

    def __init__(self, client: Client, title: str) -> None:
        self.token = f"irscope-{uuid.uuid4()}"
        self._client = client
        self._title = title
        self._text = ""
        self._percentage: int | None = None
        self._end: str | None = None
        self._news = asyncio.Event()
        self._task = asyncio.ensure_future(self._show())

    def report(self, text: str, percentage: int | None = None) -> None:
        """What goes on, and how much of it is done where that can be counted."""
        self._text, self._percentage = text, percentage
        self._news.set()

    def end(self, text: str) -> None:
        """Close the progress in the client's window; `text` is shown last."""
        self._end = text
        self._news.set()

    async def _show(self) -> None:
        try:
            await self._client.window_work_done_progress_create_async(types.WorkDoneProgressCreateParams(self.token))
        except Exception as error:  # noqa: BLE001  whatever the client says, it gets no progress and the run goes on
            log.debug("The client refused a progress report: %s", error)
            return
        self._send(types.WorkDoneProgressBegin(self._title, cancellable=self.cancellable, message=self._text or None))
        while self._end is None:
            await self._news.wait()
            self._news.clear()
            if self._end is None:
                self._send(
                    types.WorkDoneProgressReport(
                        message=self._text, cancellable=self.cancellable, percentage=self._percentage
                    )
                )
                await asyncio.sleep(_PAUSE)
        self._send(types.WorkDoneProgressEnd(message=self._end or None))

    def _send(
        self, value: types.WorkDoneProgressBegin | types.WorkDoneProgressReport | types.WorkDoneProgressEnd
    ) -> None:
        self._client.progress(types.ProgressParams(self.token, value))


class RunProgress(Progress):
    """The progress of a run; the client cancels it by its token."""

    cancellable = True
