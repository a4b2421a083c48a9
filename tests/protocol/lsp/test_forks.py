"""The whole chain with the fork server: a save in the editor is a fork of a process that has torch imported."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import light_torch
import pytest
from irscope.system.processes import children_of
from lsp_editor import SHARED, AtWork, Editor, StartEditor, until
from support import Instant, alive, at_rest, late, passed_at_this_load

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


def descriptors(pid: int) -> list[str]:
    found = []
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found.append(os.readlink(link))
        except OSError:
            continue
    return found


def threads_of(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


def resident(pid: int) -> int:
    """Kilobytes of memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text().split("\n")
    return int(next(line for line in status if line.startswith("VmRSS")).split()[1])


def printed(editor: Editor) -> str:
    return "".join(told.text for told in editor.told.get("irscope/output", []))


def states(editor: Editor) -> list[str]:
    return [told.state for told in editor.told.get("irscope/worker", [])]


def texts(editor: Editor) -> list[str]:
    return [told.text for told in editor.told.get("irscope/worker", [])]


def light(folder: Path, at_import: str = "") -> dict[str, Any]:
    """Settings of runs with a torch that is imported at once: what becomes of workers is the same."""
    return {"env": light_torch.light_torch(folder / "light", at_import)}


async def ready(editor: Editor) -> int:
    """Waits until the editor says that there is a worker; gives its process."""
    await editor.until(lambda: any(text.startswith("Ready (torch 2") for text in texts(editor)), 90)
    return await worker_of(editor)


async def worker_of(editor: Editor) -> int:
    """The process below the server; for a moment there is another, which says in which folders packages are installed."""
    found: list[int] = []

    def alone() -> bool:
        found[:] = children_of(server_pid(editor))
        return len(found) == 1

    await editor.until(alone, 10)
    return found[0]


async def test_a_save_is_a_fork_and_says_so(start_editor: StartEditor, tmp_path: Path) -> None:
    editor = await start_editor()
    uri = editor.open(write(tmp_path))
    await editor.until_ended()
    assert "starting" in states(editor) and editor.state == "ready"
    worker = await ready(editor)
    assert f"parent {worker}\n" in printed(editor), "the first run has waited for the worker"
    editor.told["irscope/output"].clear()
    begun = Instant()
    editor.save(uri)
    await editor.until_ended(2)
    assert passed_at_this_load(begun) < 3
    assert f"parent {worker}\n" in printed(editor)
    result = await editor.request("irscope/run", uri=uri, lane="deep")
    assert result.outcome == "completed" and result.compiles == 2
    assert "1 cause costs" in editor.file_state(uri).text
    assert printed(editor).count(f"parent {worker}\n") == 2, "a deep run is a fork, too"


async def test_without_a_worker_where_the_user_wants_none(start_editor: StartEditor, tmp_path: Path) -> None:
    editor = await start_editor(settings={"worker": {"enabled": False}, "run": light(tmp_path)})
    editor.open(write(tmp_path, light_torch.SCRIPT))
    await editor.until_ended()
    assert "parent" in printed(editor) and "starting" not in states(editor)
    assert children_of(server_pid(editor)) == [], "nothing stays when the run has ended"


async def test_nothing_starts_in_a_workspace_that_is_not_trusted(start_editor: StartEditor, tmp_path: Path) -> None:
    editor = await start_editor(options={"trusted": False}, settings={"run": light(tmp_path)})
    editor.open(write(tmp_path, light_torch.SCRIPT))
    await asyncio.sleep(0.5)
    assert children_of(server_pid(editor)) == [] and editor.state == "stopped"
    editor.client.protocol.notify("irscope/trusted", {})
    await editor.until_ended()
    worker = await ready(editor)
    editor.client.protocol.notify("irscope/trusted", {"trusted": False})
    await editor.until(lambda: not alive(worker) and editor.state == "stopped", 5)


async def test_cancel_while_torch_is_being_imported(start_editor: StartEditor, tmp_path: Path) -> None:
    editor = await start_editor(settings={"run": light(tmp_path, "import time; time.sleep(600)\n")})
    uri = editor.open(write(tmp_path))
    await editor.until(lambda: "running" in states(editor))
    begun = Instant()
    assert (await editor.request("irscope/cancel", uri=uri)).cancelled
    await editor.until(lambda: editor.state == "starting")
    assert passed_at_this_load(begun) < 1


@SHARED
async def test_a_worker_that_is_killed_is_replaced(at_work: AtWork, tmp_path: Path) -> None:
    editor = await at_work()
    uri = editor.open(write(tmp_path))
    await editor.until_ended()
    worker = await ready(editor)
    os.kill(worker, signal.SIGKILL)
    await editor.until(lambda: editor.state == "crashed")
    assert "has crashed" in editor.log
    editor.told["irscope/output"].clear()
    editor.save(uri)
    await editor.until_ended(2)
    second = await worker_of(editor)
    assert second != worker and f"parent {second}\n" in printed(editor)
    await editor.until(lambda: editor.codes(uri) == ["GB0059"])


@SHARED
async def test_a_worker_that_is_killed_during_a_run(at_work: AtWork, tmp_path: Path) -> None:
    editor = await at_work()
    path = write(tmp_path, SCRIPT + "import time\nprint('run', os.getpid(), flush=True)\ntime.sleep(600)\n")
    uri = editor.open(path)
    await editor.until(lambda: "run " in printed(editor), 90)
    run = int(printed(editor).rpartition("run ")[2])
    worker = await worker_of(editor)
    os.kill(worker, signal.SIGKILL)
    await editor.until_ended(1, 10)
    await editor.until(lambda: "crashed" in editor.codes(uri))
    await until(lambda: not alive(run), 5)
    assert "GB0059" in editor.codes(uri), "what it found until then is kept"


@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.nightly)])
async def test_nothing_outlives_a_language_server_that_is_killed(
    start_editor: StartEditor, tmp_path: Path, number: signal.Signals
) -> None:
    """Neither the worker nor the run nor what the script has started."""
    editor = await start_editor(settings={"run": light(tmp_path)}, fresh=True)
    path = write(
        tmp_path,
        light_torch.SCRIPT
        + "import subprocess, sys, time\n"
        + "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        + "print('run', os.getpid(), child.pid, flush=True)\ntime.sleep(600)\n",
    )
    editor.open(path)
    await editor.until(lambda: "run " in printed(editor), 90)
    run, child = map(int, printed(editor).rpartition("run ")[2].split())
    worker = await worker_of(editor)
    os.kill(server_pid(editor), number)
    await until(lambda: not alive(run) and not alive(worker) and not alive(child), 5)


@pytest.mark.parametrize(
    ("before", "saves", "kilobytes"), [(4, 8, 2_000), pytest.param(40, 200, 4_000, marks=pytest.mark.nightly)]
)
async def test_many_saves_leave_nothing_behind(
    start_editor: StartEditor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int, saves: int, kilobytes: int
) -> None:
    """No process, thread, descriptor, memory or temporary file, in the server or in the worker."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    editor = await start_editor(fresh=True)
    uri = editor.open(write(tmp_path))
    await editor.until_ended()
    worker, server = await ready(editor), server_pid(editor)

    async def save(first: int, last: int) -> None:
        for number in range(first, last + 1):
            if number % 2:  # with and without an edit
                editor.change(uri, SCRIPT + f"# edit {number}\n", number)
            editor.save(uri)
            await editor.until_ended(number)

    await save(2, before)
    await asyncio.to_thread(at_rest, worker)

    def open_files() -> tuple[int, int, int]:
        """SQLite keeps as many descriptors of the store as were ever open at once, while one connection stays open: one
        each for what is asked of it, for what takes long to answer, for a run, and for packing the run before."""
        store = [file for file in descriptors(server) if file.endswith("runs.db")]
        return len(descriptors(server)) - len(store), len(descriptors(worker)), len(store)

    opened = open_files()
    assert opened[2] <= 4
    threads = threads_of(server)
    memory = resident(server), resident(worker)
    files = sorted(temporary.rglob("*"))
    await save(before + 1, saves)
    assert printed(editor).count(f"parent {worker}\n") == saves
    spare = await asyncio.to_thread(at_rest, worker)
    # No more than there were: the first look may have been while a run was being packed, as the last may be.
    most = (opened[0], opened[1], 4)
    await editor.until(lambda: all(now <= then for now, then in zip(open_files(), most, strict=True)), 5)
    await editor.until(lambda: children_of(server) == [worker] and children_of(worker) == [spare], 5)
    await editor.until(lambda: threads_of(server) <= threads, 5)
    assert sorted(temporary.rglob("*")) == files
    grown = resident(server) - memory[0], resident(worker) - memory[1]
    assert max(grown) < kilobytes, f"kilobytes grown in {saves - before} saves: server {grown[0]}, worker {grown[1]}"
    assert editor.codes(uri) == ["GB0059"]


async def test_a_script_that_prints_without_end(start_editor: StartEditor, tmp_path: Path) -> None:
    """It is slowed down, its lines come whole and in order, the server answers and stays small until the limit."""
    editor = await start_editor(settings={"run": {"outputBudgetMegabytes": 6, **light(tmp_path)}})
    server = server_pid(editor)
    path = write(
        tmp_path,
        "import torch  # torch.compile\nnumber = 0\nwhile True:\n    print(number, 'x' * 500)\n    number += 1\n",
    )
    uri = editor.open(path)
    await editor.until(lambda: len(editor.told.get("irscope/output", [])) > 3, 90)
    before = resident(server)
    while editor.state == "running":
        begun = Instant()
        await editor.hover(uri, 0, 0)
        assert not late(begun, 1.0), "the server answers meanwhile"
        await asyncio.sleep(0.02)
    lines = printed(editor).split("\n")[:-1]
    assert [int(line.split()[0]) for line in lines] == list(range(len(lines)))
    assert 5_500_000 < len(printed(editor)) < 9_000_000
    assert resident(server) - before < 20_000, "kilobytes"
    assert "output" in editor.file_state(uri).text and editor.file_state(uri).limit == "output"


LIBRARY = """\
import torch


@torch.compile
def f(x):
    y = torch.relu(x)
    return y + 1
"""


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param("train.py --size 3", marks=pytest.mark.nightly),
        pytest.param("-m pkg", marks=pytest.mark.nightly),
        "pytest tests/test_lib.py::test_f",
    ],
)
async def test_a_library_module_runs_by_its_entry_as_it_is_in_the_editor(
    start_editor: StartEditor, tmp_path: Path, entry: str
) -> None:
    """The module and another one that it imports are edited and not saved; nothing is written to either."""
    for name, text in {
        "lib.py": LIBRARY,
        "names.py": "SAID = 'on the disk'\n",
        "train.py": "import torch\nfrom lib import f\nf(torch.ones(3))\n",
        "pkg/__main__.py": "import torch\nfrom lib import f\nf(torch.ones(3))\n",
        "tests/test_lib.py": "import torch\nfrom lib import f\n\ndef test_f():\n    f(torch.ones(3))\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    editor = await start_editor(folder=tmp_path, options={"run": {"entry": entry, "onSave": "off"}})
    names = editor.open(tmp_path / "names.py")
    uri = editor.open(tmp_path / "lib.py")
    editor.change(names, "SAID = 'in the editor'\n")
    edited = LIBRARY.replace("    return", "    print(SAID)\n    return").replace(
        "import torch\n", "import torch\nfrom names import SAID\n"
    )
    editor.change(uri, edited)
    answer = await editor.request("irscope/run", uri=uri, lane="fast")
    assert answer.outcome == "completed", answer.message
    await editor.until(lambda: editor.codes(uri) == ["GB0059"])
    assert editor.diagnostics(uri)[0].range.start.line == 7
    if not entry.startswith("pytest"):  # which keeps what tests print to itself
        assert "in the editor" in printed(editor)
    assert (await editor.lenses(uri))[-1][1].startswith("2 graphs · 1 break")
    assert (tmp_path / "lib.py").read_text() == LIBRARY and "disk" in (tmp_path / "names.py").read_text()


async def test_other_variables_are_another_worker(start_editor: StartEditor, tmp_path: Path) -> None:
    editor = await start_editor(settings={"run": light(tmp_path)})
    uri = editor.open(write(tmp_path, light_torch.SCRIPT))
    await editor.until_ended()
    worker = await ready(editor)
    editor.client.set_configuration({"irscope": {"run": {"env": {**light(tmp_path)["env"], "A_VARIABLE": "1"}}}})
    editor.client.workspace_did_change_configuration(_changed())
    await editor.until(lambda: not alive(worker), 5)
    editor.save(uri)
    await editor.until_ended(2)
    second = await worker_of(editor)
    assert f"parent {second}\n" in printed(editor)


async def test_idle_for_long(start_editor: StartEditor, tmp_path: Path) -> None:
    editor = await start_editor(settings={"worker": {"idleMinutes": 2 / 60}, "run": light(tmp_path)})
    uri = editor.open(write(tmp_path, light_torch.SCRIPT))
    await editor.until_ended()
    worker = await ready(editor)
    await editor.until(lambda: not alive(worker), 10)
    assert editor.state == "ready"
    editor.save(uri)
    await editor.until_ended(2)
    assert printed(editor).count("parent") == 2


async def test_an_installed_package_changes(start_editor: StartEditor, tmp_path: Path) -> None:
    packages = tmp_path / "site-packages"
    packages.mkdir()
    editor = await start_editor(settings={"run": {"env": light_torch.light_torch(packages)}})
    uri = editor.open(write(tmp_path, light_torch.SCRIPT))
    await editor.until_ended()
    worker = await ready(editor)
    await editor.until(lambda: "A worker is ready" in editor.log)  # The packages have been looked at.
    (packages / "new_package").mkdir()
    editor.save(uri)
    await editor.until_ended(2)
    await until(lambda: not alive(worker), 5)
    second = await worker_of(editor)
    assert f"parent {second}\n" in printed(editor) and "package has changed" in editor.log


def _changed() -> Any:
    from lsprotocol import types

    return types.DidChangeConfigurationParams(settings=None)
