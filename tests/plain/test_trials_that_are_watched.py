"""Where the system does not give a trial its own view of the files, the trial ends before it writes, and says what."""

from __future__ import annotations

import ctypes
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from irscope.cli.fixing import _candidate
from irscope.driver.fixing.candidates import Candidate
from irscope.driver.trials.proving import Status, Trial, compared
from irscope.protocol import Fix, FoundEvidence, NotHeldBack, Outcome, OutcomeKind
from irscope.runner.trial import what_was_held_back

WATCHED = """\
import ctypes, multiprocessing, os, shutil, socket, sqlite3, subprocess, sys, tempfile
from irscope.internals.hooks import Hooks
from irscope.runner import trial
from irscope.system import landlock
trial.scratch.enter = lambda folder: False
if not {kernel}:
    landlock.version = lambda: 0
hooks = Hooks(trial.hold_back({folder!r}).hooks, lambda gap: None)
with hooks:
    {work}
print("done")
"""
HELD_BACK = {
    "open('new.txt', 'w')": "write new.txt",
    "open('old.txt', 'a')": "write old.txt",
    "open('old.txt', 'r+')": "write old.txt",
    "open('link.txt', 'w')": "write link.txt",
    "os.open('new.txt', os.O_CREAT | os.O_WRONLY)": "write new.txt",
    "os.remove('old.txt')": "write old.txt",
    "os.rename('old.txt', 'new.txt')": "write old.txt",
    "os.makedirs('new/inner')": "write new",
    "os.symlink('old.txt', 'new.txt')": "write new.txt",
    "os.truncate('old.txt', 0)": "write old.txt",
    "os.chmod('old.txt', 0)": "write old.txt",
    "os.utime('old.txt')": "write old.txt",
    "shutil.copy('old.txt', 'new.txt')": "write new.txt",
    "os.system('date > new.txt')": "start date",
    "subprocess.run(['rm', 'old.txt'])": "start rm",
    "subprocess.run('rm old.txt', shell=True)": "start sh",
    "os.execv('/bin/rm', ['rm', 'old.txt'])": "start rm",
    "socket.create_connection(('127.0.0.1', 9))": "connect to 127.0.0.1:9",
    "socket.create_connection(('tracker.invalid', 443))": "connect to tracker.invalid:443",
    "socket.gethostbyname('tracker.invalid')": "connect to tracker.invalid",
    "socket.socket(type=socket.SOCK_DGRAM).sendto(b'1', ('127.0.0.1', 9))": "connect to 127.0.0.1:9",
    "os.fork() == 0 and open('new.txt', 'w'); os.wait()": "write new.txt",
    "subprocess.run([sys.executable, '-c', '1'])": f"start {Path(sys.executable).name}",
    "multiprocessing.get_context('spawn').Process(target=print).start()": f"start {Path(sys.executable).name}",
    "sys.audit('_winapi.CreateProcess', 'python.exe', 'from multiprocessing.spawn import', None)": "start python.exe",
    "socket.socket(socket.AF_UNIX).connect(chr(0) + 'tracker')": "connect to @tracker",
    "import torch; torch.save(1, 'new.txt')": "write new.txt",
}
HARMLESS = [
    "open('old.txt').read(); os.makedirs('.', exist_ok=True); os.path.exists('new.txt')",
    "tempfile.NamedTemporaryFile('w').write('1'); tempfile.mkdtemp(); open(os.devnull, 'w').write('1')",
    "shutil.rmtree(tempfile.mkdtemp())",
    "sqlite3.connect(':memory:').execute('create table t (x)')",
    "sys.audit('_winapi.CreateProcess', None, 'git status', None)",
    "subprocess.run(['uname'], check=True, capture_output=True)",
    "a, b = socket.socketpair(); a.send(b'1'); socket.getaddrinfo('localhost', 80)",
]
IN_THE_KERNEL = [
    "libc = ctypes.CDLL(None); assert libc.open(b'new.txt', os.O_CREAT | os.O_WRONLY, 0o600) == -1",
    "assert subprocess.run(['git', 'init', '.'], stderr=-3).returncode != 0",
    "assert sqlite3.connect('runs.db').execute('select 1').fetchone() == (1,)",
]
HAS_LANDLOCK = sys.platform.startswith("linux") and ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), 1) >= 4


def watched(folder: Path, work: str, kernel: bool = True) -> subprocess.CompletedProcess[str]:
    """A process that is only watched, in a folder with files of the user's."""
    home = folder / "home"
    home.mkdir()
    (home / "old.txt").write_text("some text")
    (home / "link.txt").symlink_to(home / "old.txt")
    (home / "runs.db").touch()
    (folder / "trial").mkdir()
    code = WATCHED.format(folder=str(folder / "trial"), work=work, kernel=kernel)
    done = subprocess.run([sys.executable, "-c", code], cwd=home, capture_output=True, text=True, check=False)
    assert (home / "old.txt").read_text() == "some text"
    assert sorted(path.name for path in home.iterdir()) == ["link.txt", "old.txt", "runs.db"]
    return done


@pytest.mark.skipif(sys.platform == "win32", reason="names of the programs")
@pytest.mark.parametrize("kernel", [True, False], ids=["kernel", "Python"])
@pytest.mark.parametrize("work", HELD_BACK)
def test_a_trial_ends_before_it_does_harm(tmp_path: Path, work: str, kernel: bool) -> None:
    done = watched(tmp_path, work, kernel)
    assert done.returncode == -signal.SIGKILL and not done.stdout, done.stderr
    assert what_was_held_back(str(tmp_path / "trial")) == f"not run: it would {HELD_BACK[work]}."


@pytest.mark.skipif(sys.platform == "win32", reason="names of the programs")
@pytest.mark.parametrize("work", HARMLESS)
def test_a_trial_that_does_no_harm_goes_on(tmp_path: Path, work: str) -> None:
    done = watched(tmp_path, work)
    assert done.stdout == "done\n", done.stderr
    assert not what_was_held_back(str(tmp_path / "trial"))


@pytest.mark.skipif(not HAS_LANDLOCK, reason="Landlock is of Linux")
@pytest.mark.parametrize("work", IN_THE_KERNEL)
def test_the_kernel_keeps_what_is_not_python_from_writing(tmp_path: Path, work: str) -> None:
    done = watched(tmp_path, work)
    assert done.stdout == "done\n", done.stderr


def test_without_the_kernel_a_database_is_not_opened(tmp_path: Path) -> None:
    watched(tmp_path, "sqlite3.connect('runs.db')", kernel=False)
    assert what_was_held_back(str(tmp_path / "trial")) == "not run: it would write runs.db."


@pytest.mark.skipif(not HAS_LANDLOCK, reason="Landlock is of Linux")
def test_the_kernel_forbids_connections(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"struct.pack('=HHI', socket.AF_INET, socket.htons({server.getsockname()[1]}), 0x0100007f)"
        work = f"import struct; s = socket.socket(); assert ctypes.CDLL(None).connect(s.fileno(), {address} + bytes(8), 16)"
        assert watched(tmp_path, work).stdout == "done\n"


OLD_KERNEL = """\
from irscope.runner import trial
from irscope.system import landlock
trial.scratch.enter = lambda folder: False
landlock.version = lambda: {version}
print(*(what.value for what in trial.hold_back({folder!r}).but))
"""
SOCKETS = ["connecting-to-local-sockets", "sending-datagrams"]


@pytest.mark.skipif(not HAS_LANDLOCK, reason="Landlock is of Linux")
@pytest.mark.parametrize(
    ("version", "more"),
    [
        (0, ["writing-files", "truncating-files", "connecting"]),
        (2, ["truncating-files", "connecting"]),
        (3, ["connecting"]),
        (4, []),
    ],
)
def test_a_trial_knows_what_the_kernel_does_not_hold_back(tmp_path: Path, version: int, more: list[str]) -> None:
    code = OLD_KERNEL.format(version=version, folder=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [*more, *SOCKETS]


def test_a_proof_says_what_is_not_held_back() -> None:
    free = (NotHeldBack.FILES, NotHeldBack.CONNECTIONS)
    evidence = FoundEvidence(programs=1, tensors=1, not_held_back=free)
    trial = Trial(Outcome(OutcomeKind.COMPLETED, 0, "", 1.0), (), (), ([], []), evidence)
    proof = compared(trial, trial)
    assert (proof.status, proof.not_held_back) == (Status.VERIFIED, free)
    assert proof.checks[1:] == ("but the system does not keep code other than Python from writing files, connecting",)
    assert _candidate(Candidate(Fix("Keep it", "", ()), "a.py", proof))["not_held_back"] == [
        "writing-files",
        "connecting",
    ]
