"""Gives the tests of the servers their fixtures."""

from fixtures import client, folder, play, script, start_editor, store, store_path

__all__ = ["client", "folder", "play", "script", "start_editor", "store", "store_path"]
