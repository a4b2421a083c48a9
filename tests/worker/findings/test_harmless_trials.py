"""Trials do no harm: the user's files, programs and trackers are as the first run left them."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from irscope.driver.driver import RunSpec
from irscope.driver.trials.proving import Proof, Prover, Status
from support import run_cli, shared_worker, write

SCRIPT = """\
import csv, ctypes, json, mmap, os, pathlib, shutil, socket, sqlite3, subprocess, sys, tempfile
import torch

@torch.compile
def f(x):
    y = x.sin()
    if y.sum() > 0:
        y = y + 1
    return y * 2

net = torch.nn.Linear(4, 4)
for step in range(2):
    f(net(torch.linspace(-1, 1, 8).view(2, 4))).sum().backward()

WORK
"""
CHANGED = (
    "    if y.sum() > 0:\n        y = y + 1\n",
    "    y = torch.where(y.sum() > 0, y + 1, y)\n",
)
WRITES = """\
torch.save(net.state_dict(), "last.pt")
assert torch.load("last.pt")["weight"].equal(net.weight)
with open("metrics.jsonl", "a") as metrics:
    metrics.write(json.dumps({"step": 1}) + chr(10))
pathlib.Path("events.out.tfevents").write_bytes(b"events")
torch._C.PyTorchFileWriter("native.pt").write_end_of_file()
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
libc.fclose.argtypes = [ctypes.c_void_p]
libc.fclose(libc.fopen(b"opened_in_c", b"a"))
for name in ("file_of_first", "folder_of_first"):  # what the first run makes, a trial removes
    if os.path.isdir(name):
        shutil.rmtree(name)
    elif os.path.exists(name):
        os.remove(name)
    elif name.startswith("file"):
        open(name, "w").close()
    else:
        os.makedirs(name + "/inner")
    print(os.path.exists(name))
pathlib.Path("old.pt").unlink(missing_ok=True)
os.replace("last.pt", "previous.pt")
os.truncate("long", 1)
os.close(os.open(f"/proc/self/fd/{os.open('touched', os.O_RDONLY)}", os.O_WRONLY | os.O_TRUNC))
os.chmod("touched", 0o600)
with open("mapped", "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
    memory[0:1] = b"X"
pathlib.Path("out_of_it").write_text("through a symbolic link")
with sqlite3.connect("runs.db") as base:
    base.execute("create table if not exists runs (id)")
    base.execute("insert into runs values (1)")
base.close()
subprocess.run([sys.executable, "-c", "open('by_child', 'a').write('1')"], check=True)
os.system("echo 1 >> by_shell")
if os.fork() == 0:
    open("by_fork", "a").write("1")
    os._exit(0)
os.wait()
for batch in torch.utils.data.DataLoader(torch.arange(4), num_workers=2):
    print(batch)
os.chdir("old_folder")
open("in_folder", "a").write("1")
assert len(list(csv.reader(open("../metrics.jsonl")))) >= 1
"""


def make_files(folder: Path) -> None:
    """What the user has before the first run."""
    (folder / "old_folder").mkdir()
    for name in ("old.pt", "long", "touched", "mapped", "target", "old_folder/file"):
        (folder / name).write_text("some text")
    (folder / "out_of_it").symlink_to(folder / "target")


def state(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Bytes, rights and time of change of each file."""
    found = sorted(path for path in folder.rglob("*") if "__pycache__" not in path.parts)
    return {
        str(path): (path.lstat().st_mtime_ns, path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in found
    }


def spec_of(folder: Path, work: str) -> tuple[RunSpec, dict[str, str]]:
    script = write(folder, SCRIPT.replace("WORK", work))
    return RunSpec(str(script), cwd=str(folder)), {str(script): script.read_text().replace(*CHANGED)}


def proven(spec: RunSpec, texts: dict[str, str]) -> tuple[Proof, dict[str, object], dict[str, object]]:
    """The proof of the change, and the folder after the first run and after all."""
    folder = Path(spec.script).parent
    with Prover(spec, shared_worker()) as prover:
        states: list[dict[str, object]] = []
        run = prover.run

        def noted(*arguments: object, **options: object) -> object:
            made = run(*arguments, **options)  # type: ignore[arg-type]
            states.append(dict(state(folder)))
            return made

        prover.run = noted  # type: ignore[method-assign,assignment]
        (finding,) = prover.begin().findings
        proof, _ = prover.prove(texts, finding)
    return proof, states[0], dict(state(folder))


@pytest.fixture(scope="session")
def is_apart(tmp_path_factory: pytest.TempPathFactory) -> bool:
    """Whether this system gives a process its own view of the files."""
    folder = tmp_path_factory.mktemp("apart")
    code = f"from irscope.runner.trial import hold_back; print(not hold_back({str(folder)!r}).hooks)"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "True\n"


@pytest.mark.skipif(sys.platform == "win32", reason="the script forks")
def test_the_files_are_as_the_first_run_left_them(tmp_path: Path, is_apart: bool) -> None:
    make_files(tmp_path)
    spec, texts = spec_of(tmp_path, WRITES)
    proof, after_first, after_all = proven(spec, texts)
    assert after_all == after_first
    assert (tmp_path / "metrics.jsonl").read_text().count("\n") == 1
    assert [(tmp_path / name).read_text() for name in ("by_child", "by_fork")] == ["1", "1"]
    if is_apart:
        assert proof.status is Status.VERIFIED, proof
    else:
        assert (proof.status, proof.reason) == (Status.UNPROVEN, "not run: it would write last.pt.")


@contextmanager
def tracker() -> Iterator[tuple[int, list[bytes]]]:
    """A program that listens at a port, and what it was sent."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    heard.append(connection.recv(100))

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1], heard


CONNECTS = {
    "plain": "with socket.create_connection(('127.0.0.1', PORT)) as s: s.sendall(b'step 1')",
    "in a child": "if os.fork() == 0:\n    with socket.create_connection(('127.0.0.1', PORT)) as s:\n"
    "        s.sendall(b'step 1')\n    os._exit(0)\nos.wait()",
    "swallowed": "try:\n    with socket.create_connection(('127.0.0.1', PORT)) as s:\n        s.sendall(b'step 1')\n"
    "except Exception:\n    pass",
}


@pytest.mark.parametrize("way", CONNECTS)
def test_a_tracker_hears_of_the_first_run_only(tmp_path: Path, way: str) -> None:
    with tracker() as (port, heard):
        spec, texts = spec_of(tmp_path, CONNECTS[way].replace("PORT", str(port)))
        proof, _, _ = proven(spec, texts)
        assert (proof.status, proof.reason) == (Status.UNPROVEN, f"not run: it would connect to 127.0.0.1:{port}.")
        assert heard == [b"step 1"]


def test_what_was_run_before_is_a_trial_from_the_start(tmp_path: Path, is_apart: bool) -> None:
    """As after a save, which has run the script."""
    with tracker() as (port, heard):
        spec, texts = spec_of(tmp_path, CONNECTS["plain"].replace("PORT", str(port)))
        with Prover(spec, shared_worker(), has_run=True) as prover:
            prover.begin()
            proof, _ = prover.prove(texts, None)
        assert proof.reason == f"not run: it would connect to 127.0.0.1:{port}." and not heard


OWN_NETWORK = """\
import torch.distributed as dist
dist.init_process_group("gloo", init_method="tcp://127.0.0.1:PORT", rank=0, world_size=1)
ones = torch.ones(2)
dist.all_reduce(ones)
dist.destroy_process_group()
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(server.getsockname())
"""


def test_a_script_may_talk_to_itself(tmp_path: Path, is_apart: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    spec, texts = spec_of(tmp_path, OWN_NETWORK.replace("PORT", str(port)))
    proof, _, _ = proven(spec, texts)
    assert proof.status is (Status.VERIFIED if is_apart else Status.UNPROVEN), proof


OLD_KERNEL = """\
import ctypes

class Library(ctypes.CDLL):
    def __getattr__(self, name):
        function = super().__getattr__(name)
        if name == "unshare":
            return lambda *arguments: -1
        if name == "syscall":
            return lambda number, *more: -1 if number in (444, 445, 446) else function(number, *more)
        return function

ctypes.CDLL = Library
"""


@pytest.mark.nightly
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere nothing is held back by the kernel")
def test_a_fix_says_that_the_kernel_has_neither_namespaces_nor_landlock(tmp_path: Path) -> None:
    spec, _ = spec_of(tmp_path, "")
    write(tmp_path, OLD_KERNEL, "site/sitecustomize.py")
    path = os.pathsep.join([str(tmp_path / "site"), os.environ.get("PYTHONPATH", "")])
    done = run_cli("fix", spec.script, "--json", env={"PYTHONPATH": path})
    (fix,) = [one for one in json.loads(done.stdout)["findings"][0]["candidates"] if one["status"] == "verified"]
    assert "writing-files" in fix["not_held_back"]
    assert any("from writing files" in check for check in fix["checks"])
