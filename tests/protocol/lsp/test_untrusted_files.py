"""A folder that nobody trusts, in which every file that the server might read is a pipe that nobody writes into."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest
from lsp_editor import StartEditor
from support import alive
from test_forks import server_pid

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="POSIX's special files")

SCRIPT = "import torch\nimport beside\n\n@torch.compile\ndef f(x):\n    return beside.g(x)\n"


@pytest.mark.parametrize("trusted", [False, True])
async def test_the_server_answers_and_ends(start_editor: StartEditor, tmp_path: Path, trusted: bool) -> None:
    (tmp_path / ".vscode").mkdir()
    for name in (".vscode/launch.json", ".env", "irscope.baseline", "beside.py", "library.py"):
        os.mkfifo(tmp_path / name)
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    editor = await start_editor(
        options={"trusted": trusted}, settings={"baseline": "irscope.baseline", "run": {"onSave": "off"}}
    )
    uri = editor.open(script)
    for _ in range(2):  # the first of them might still find the server at work
        assert (await asyncio.wait_for(editor.request("irscope/entries", uri=uri), 20)) is not None
        editor.save(uri)
    pid = server_pid(editor)
    os.kill(pid, signal.SIGTERM)
    await editor.until(lambda: not alive(pid), 10)
