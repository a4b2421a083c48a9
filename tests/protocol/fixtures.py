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
from lsp_editor import PLAYING_SERVER, SERVER, AtWork, Editor, StartEditor
from made import SCRIPT

UNTRIED = {"fixes": {"trySeconds": 0}}
"""Fixes are tried in the tests that are about that: a trial is a run."""


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
            options={"storePath": store_path, **UNTRIED, **(options or {})},
            env={**os.environ, "IRSCOPE_TEST_PLAY": str(tmp_path / "play.json")},
            **kwargs,
        )
        editors.append(editor)
        return editor

    yield start
    for editor in editors:
        await editor.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def editors_at_work() -> AsyncIterator[list[Editor]]:
    """The last one is that of `at_work`; another one follows where its server has ended."""
    editors: list[Editor] = []
    yield editors
    for editor in editors:
        await editor.close()


@pytest_asyncio.fixture(loop_scope="session")
async def at_work(
    editors_at_work: list[Editor], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[AtWork]:
    """The editor that tests share whose subject is a real run, not the start of the server and of its worker.

    The settings are those of the test's own folder.  Tests with it have the mark ``SHARED``: one event loop for all.
    """

    async def begin(settings: dict[str, Any] | None = None) -> Editor:
        if not editors_at_work or editors_at_work[-1].has_ended:
            folder = tmp_path_factory.mktemp("at-work")
            editor = await Editor.start(SERVER, options={"storePath": str(folder / "runs.db"), **UNTRIED})
            editors_at_work.append(editor)
            (folder / "open.py").write_text("import torch\n")
            editor.open(folder / "open.py")  # a worker is kept as long as a file may need it
        editor = editors_at_work[-1]
        editor.begin_anew(settings or {}, tmp_path)
        return editor

    yield begin
    for editor in editors_at_work[-1:]:
        await editor.leave(tmp_path)


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
