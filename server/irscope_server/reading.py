"""What irscope's reading requests need of a server, so that `irscope view` answers them by the same functions."""

from __future__ import annotations

from typing import Protocol

from irscope_server.archive import Archive
from irscope_server.texts import Texts


class Reading(Protocol):
    """A server with a run store: the language server, and that of `irscope view`, which has no client and no editor."""

    archive: Archive
    texts: Texts

    def path_of(self, uri: str) -> str | None:
        """The path of a ``file:`` URI; nothing for other schemes."""

    def uri_of(self, path: str) -> str:
        """The URI of a file, or of what the store calls a module or a test."""
