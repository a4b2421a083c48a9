"""Fixtures of the server's tests: a real server process, a store, an editor."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from dap_client import Client
from dap_runs import small_run
from lsp_editor import PLAYING_SERVER, SERVER, Editor, StartEditor
from made import SCRIPT


@pytest.fixture
def store_path(tmp_path: Path) -> str:
    return str(tmp_path / "store" / "runs.db")


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """What the acts of `made.py` are about."""
    path = tmp_path / "my script.py"
    path.write_text(SCRIPT)
    return path


@pytest.fixture
def play(tmp_path: Path) -> Callable[..., Path]:
    """Writes what the playing server's runs do instead of running; see playing_server.py."""
    path = tmp_path / "play.json"

    def write(*acts: dict[str, Any]) -> Path:
        path.write_text(json.dumps(list(acts)))
        return path

    write()
    return write


@pytest_asyncio.fixture
async def start_editor(tmp_path: Path, store_path: str, play: Any) -> AsyncIterator[StartEditor]:
    """Starts an editor with a real server process; ``playing=True`` puts a play in place of the runs."""
    editors: list[Editor] = []

    async def start(*, playing: bool = False, options: dict[str, Any] | None = None, **kwargs: Any) -> Editor:
        editor = await Editor.start(
            PLAYING_SERVER if playing else SERVER,
            options={"storePath": store_path, **(options or {})},
            env={**os.environ, "IRSCOPE_TEST_PLAY": str(tmp_path / "play.json")},
            **kwargs,
        )
        editors.append(editor)
        return editor

    yield start
    for editor in editors:
        await editor.close()


# --- the debug adapter ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A script with a stored run of it."""
    path = tmp_path_factory.mktemp("dap")
    small_run(path / "runs.db", path)
    return path


@pytest.fixture
def store(folder: Path) -> str:
    return str(folder / "runs.db")


@pytest.fixture
def client() -> Iterator[Client]:
    with Client() as started:
        yield started
