"""The whole chain with the fork server: a save in the editor is a fork of a process that has torch imported."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from lsp_editor import Editor, StartEditor, until

pytestmark = pytest.mark.worker

SCRIPT = """\
import os
import torch


@torch.compile
def f(x):
    y = torch.relu(x)
    print("traced")
    return y + 1


f(torch.ones(3))
print("parent", os.getppid(), flush=True)
"""


def write(tmp_path: Path, text: str = SCRIPT) -> Path:
    path = tmp_path / "script.py"
    path.write_text(text)
    return path


def server_pid(editor: Editor) -> int:
    assert editor.client._server
    return int(editor.client._server.pid)


def children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for task in listed for child in task.read_text().split()]


def descriptors(pid: int) -> list[str]:
    found = []
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found.append(os.readlink(link))
        except OSError:
            continue
    return found


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def printed(editor: Editor) -> str:
    return "".join(told.text for told in editor.told.get("irscope/output", []))


def states(editor: Editor) -> list[str]:
    return [told.state for told in editor.told.get("irscope/worker", [])]


def texts(editor: Editor) -> list[str]:
    return [told.text for told in editor.told.get("irscope/worker", [])]


async def ready(editor: Editor) -> int:
    """Waits until the editor says that there is a worker; gives its process."""
    await editor.until(lambda: any(text.startswith("Ready (torch 2") for text in texts(editor)), 90)
    (worker,) = children(server_pid(editor))
    return worker


async def test_a_save_is_a_fork_and_says_so(start_editor: StartEditor, tmp_path: Path) -> None:
    editor = await start_editor()
    uri = editor.open(write(tmp_path))
    await editor.until_ended()
    assert "starting" in states(editor) and editor.state == "ready"
    worker = await ready(editor)
    assert f"parent {worker}\n" in printed(editor), "the first run has waited for the worker"
    editor.told["irscope/output"].clear()
    begun = time.monotonic()
    editor.save(uri)
    await editor.until_ended(2)
    assert time.monotonic() - begun < 3
    assert f"parent {worker}\n" in printed(editor)
    result = await editor.request("irscope/run", uri=uri, lane="deep")
    assert result.outcome == "completed"
    assert printed(editor).count(f"parent {worker}\n") == 2, "a deep run is a fork, too"


async def test_without_a_worker_where_the_user_wants_none(start_editor: StartEditor, tmp_path: Path) -> None:
    editor = await start_editor(settings={"worker": {"enabled": False}})
    editor.open(write(tmp_path))
    await editor.until_ended()
    assert f"parent {server_pid(editor)}\n" in printed(editor) and "starting" not in states(editor)


async def test_nothing_starts_in_a_workspace_that_is_not_trusted(start_editor: StartEditor, tmp_path: Path) -> None:
    editor = await start_editor(options={"trusted": False})
    editor.open(write(tmp_path))
    await asyncio.sleep(0.5)
    assert children(server_pid(editor)) == [] and editor.state == "stopped"
    editor.client.protocol.notify("irscope/trusted", {})
    await editor.until_ended()
    worker = await ready(editor)
    editor.client.protocol.notify("irscope/trusted", {"trusted": False})
    await editor.until(lambda: gone(worker) and editor.state == "stopped", 5)


async def test_cancel_while_torch_is_being_imported(start_editor: StartEditor, tmp_path: Path) -> None:
    editor = await start_editor()
    uri = editor.open(write(tmp_path))
    await editor.until(lambda: "running" in states(editor))
    begun = time.monotonic()
    assert (await editor.request("irscope/cancel", uri=uri)).cancelled
    await editor.until(lambda: editor.state == "starting", 2)
    assert time.monotonic() - begun < 1


async def test_a_worker_that_is_killed_is_replaced(start_editor: StartEditor, tmp_path: Path) -> None:
    editor = await start_editor()
    uri = editor.open(write(tmp_path))
    await editor.until_ended()
    worker = await ready(editor)
    os.kill(worker, signal.SIGKILL)
    await editor.until(lambda: editor.state == "crashed")
    assert "has crashed" in editor.log
    editor.told["irscope/output"].clear()
    editor.save(uri)
    await editor.until_ended(2)
    (second,) = children(server_pid(editor))
    assert second != worker and f"parent {second}\n" in printed(editor)
    await editor.until(lambda: editor.codes(uri) == ["GB0059"])


async def test_a_worker_that_is_killed_during_a_run(start_editor: StartEditor, tmp_path: Path) -> None:
    editor = await start_editor()
    path = write(tmp_path, SCRIPT + "import time\nprint('run', os.getpid(), flush=True)\ntime.sleep(600)\n")
    uri = editor.open(path)
    await editor.until(lambda: "run " in printed(editor), 90)
    run = int(printed(editor).rpartition("run ")[2])
    (worker,) = children(server_pid(editor))
    os.kill(worker, signal.SIGKILL)
    await editor.until_ended(1, 10)
    await editor.until(lambda: "crashed" in editor.codes(uri))
    await until(lambda: gone(run), 5)
    assert "GB0059" in editor.codes(uri), "what it found until then is kept"


async def test_nothing_outlives_a_language_server_that_is_killed(start_editor: StartEditor, tmp_path: Path) -> None:
    editor = await start_editor()
    path = write(tmp_path, SCRIPT + "import time\nprint('run', os.getpid(), flush=True)\ntime.sleep(600)\n")
    editor.open(path)
    await editor.until(lambda: "run " in printed(editor), 90)
    run = int(printed(editor).rpartition("run ")[2])
    (worker,) = children(server_pid(editor))
    os.kill(server_pid(editor), signal.SIGKILL)
    await until(lambda: gone(run) and gone(worker), 5)


async def test_thirty_saves_leave_nothing_behind(start_editor: StartEditor, tmp_path: Path) -> None:
    editor = await start_editor()
    uri = editor.open(write(tmp_path))
    await editor.until_ended()
    worker = await ready(editor)
    for number in range(2, 4):
        editor.save(uri)
        await editor.until_ended(number)
    server = server_pid(editor)
    before = len(descriptors(server)), len(descriptors(worker))
    threads = len(list(Path(f"/proc/{server}/task").iterdir()))
    for number in range(4, 34):
        editor.save(uri)
        await editor.until_ended(number)
    assert printed(editor).count(f"parent {worker}\n") == 33
    await editor.until(lambda: (len(descriptors(server)), len(descriptors(worker))) == before, 5)
    await editor.until(lambda: children(server) == [worker] and children(worker) == [], 5)
    assert len(list(Path(f"/proc/{server}/task").iterdir())) <= threads
    assert editor.codes(uri) == ["GB0059"]


async def test_other_variables_are_another_worker(start_editor: StartEditor, tmp_path: Path) -> None:
    editor = await start_editor()
    uri = editor.open(write(tmp_path))
    await editor.until_ended()
    worker = await ready(editor)
    editor.client.set_configuration({"irscope": {"run": {"env": {"A_VARIABLE": "1"}}}})
    editor.client.workspace_did_change_configuration(_changed())
    await editor.until(lambda: gone(worker), 5)
    editor.save(uri)
    await editor.until_ended(2)
    (second,) = children(server_pid(editor))
    assert f"parent {second}\n" in printed(editor)


async def test_idle_for_long(start_editor: StartEditor, tmp_path: Path) -> None:
    editor = await start_editor(settings={"worker": {"idleMinutes": 2 / 60}})
    uri = editor.open(write(tmp_path))
    await editor.until_ended()
    worker = await ready(editor)
    await editor.until(lambda: gone(worker), 10)
    assert editor.state == "ready"
    editor.save(uri)
    await editor.until_ended(2)
    assert printed(editor).count("parent") == 2


async def test_an_installed_package_changes(start_editor: StartEditor, tmp_path: Path) -> None:
    packages = tmp_path / "site-packages"
    packages.mkdir()
    editor = await start_editor(settings={"run": {"env": {"PYTHONPATH": str(packages)}}})
    uri = editor.open(write(tmp_path))
    await editor.until_ended()
    worker = await ready(editor)
    (packages / "new_package").mkdir()
    editor.save(uri)
    await editor.until_ended(2)
    await until(lambda: gone(worker), 5)
    (second,) = children(server_pid(editor))
    assert f"parent {second}\n" in printed(editor) and "package has changed" in editor.log


def _changed() -> Any:
    from lsprotocol import types

    return types.DidChangeConfigurationParams(settings=None)
