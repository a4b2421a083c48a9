"""Gives the tests of the servers their fixtures."""

from fixtures import at_work, client, editors_at_work, folder, play, script, start_editor, store, store_path

__all__ = ["at_work", "client", "editors_at_work", "folder", "play", "script", "start_editor", "store", "store_path"]
