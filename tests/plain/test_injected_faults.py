"""Every write, `fsync` and rename of a command fails once, and is killed once: the user's files are old or new, never a
part of either, and the exit code is documented."""

from __future__ import annotations

import errno
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from facts import an_outcome
from irscope.cli import fixing
from irscope.cli.main import main
from irscope.driver.fixing.writing import write
from irscope.driver.versions import VersionDiff, VersionSide
from irscope.opening.paths import Roots
from irscope.opening.trace_run import TraceSpec, open_trace
from irscope.protocol import Outcome
from irscope.store.store import Store
from irscope.usercode.writing import WriteError, recover
from irscope.values.blame.reproducer import write_reproducer

TRACES = Path(__file__).parent / "traces"
CALLS = ("open", "write", "fsync", "ftruncate", "replace")
DOCUMENTED = {
    int(code)
    for code in re.findall(r"^\| (\d+) \|", (TRACES.parents[2] / "docs/json.md").read_text("utf-8"), re.MULTILINE)
} - {70}
OLD = b"what was there\n" * 40
KILLED = 137
"""As a shell has it of a process that SIGKILL ended."""
FAULTS = [errno.ENOSPC, errno.EIO, None]
"""None: the process is killed."""


class Fault:
    """Lets the system's calls pass but for one, which is named by its number in the order of the calls.

    A write that fails has written half: so a full disk does it.
    """

    def __init__(self, number: int, kind: int | None) -> None:
        self.calls = 0
        self._number, self._kind = number, kind

    def over(self, name: str) -> Callable[..., Any]:
        """The call, or the fault in its place."""
        call: Callable[..., Any] = unsynced if name == "fsync" else getattr(os, name)

        def maybe(*args: Any, **options: Any) -> Any:
            if name == "open" and not args[1] & (os.O_WRONLY | os.O_RDWR):
                return call(*args, **options)
            self.calls += 1
            if self.calls - 1 != self._number:
                return call(*args, **options)
            if name == "write":
                call(args[0], args[1][: len(args[1]) // 2])
            if self._kind is None:
                os._exit(KILLED)
            raise OSError(self._kind, os.strerror(self._kind), args[0])

        return maybe


def unsynced(file: int) -> None:
    """In the place of `os.fsync`: the disk of a test does not matter."""


@dataclass
class Command:
    """What a command writes into a folder, where these files are when it begins."""

    do: Callable[[Path], int]
    writes: tuple[str, ...]
    links: tuple[str, ...] = ()
    """Hard links: the first of the files has these names, too."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A store and the run in it."""
    path = str(tmp_path_factory.mktemp("faults") / "runs.db")
    with Store(path) as store:
        return path, open_trace(TraceSpec(str(TRACES / "trace.log.gz"), Roots(str(TRACES))), store)


@pytest.fixture
def commands(run: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> dict[str, Command]:
    """The commands that write, over a run that has ended."""
    store, run_id = run

    def execute(*_: object, **__: object) -> tuple[str, Outcome]:
        return run_id, an_outcome()

    for module in ("checking", "running"):
        monkeypatch.setattr(f"irscope.cli.{module}.execute", execute)
    side = VersionSide("python", "2.9", run_id, an_outcome(), 1, 1, 0.5, 1.0)
    nothing = VersionDiff("a.py", side, side, (), (), (), (), (), "2 tensors", 0, False)
    monkeypatch.setattr("irscope.cli.versioning.compared_versions", lambda *_, **__: nothing)
    patches = [("diff", "0001-a.patch", "first\n"), ("other", "0002-b.patch", "second\n")]
    monkeypatch.setattr("irscope.cli.fixing._patch_files", lambda tried: iter(patches))

    def command(*words: str) -> Callable[[Path], int]:
        return lambda folder: main([word.replace("FOLDER", str(folder)) for word in words] + ["--store", store])

    def fixes(*names: str) -> Callable[[Path], int]:
        return lambda folder: code_of(
            lambda: write({str(folder / name): (OLD.decode(), OLD.decode() + "new\n") for name in names})
        )

    script = str(TRACES / "project" / "steps.py")
    inputs = Path(store).parent / "inputs.pt"
    inputs.write_bytes(b"numbers" * 1000)
    reproducer = {"script": "print('a part')\n", "inputs": "inputs.pt"}
    diff = command("diff", "--python", "a", "--python", "b", "-o", "FOLDER/d.md", script)
    return {
        "fix --apply": Command(fixes("a.py"), ("a.py",)),
        "fix --apply, hard link": Command(fixes("a.py"), ("a.py",), links=("b.py",)),
        "fix --apply, two files": Command(fixes("a.py", "b.py"), ("a.py", "b.py")),
        "fix --apply, two files, hard link": Command(fixes("a.py", "b.py"), ("a.py", "b.py"), links=("c.py",)),
        "fix --patches": Command(
            lambda folder: code_of(lambda: fixing._write_patches(str(folder), [])), ("0001-a.patch", "0002-b.patch")
        ),
        "report -o": Command(command("report", run_id, "--no-pictures", "-o", "FOLDER/page.html"), ("page.html",)),
        "graph -o": Command(
            command("graph", run_id, "--stage", "0/0/post-grad-graph", "-o", "FOLDER/g.dot"), ("g.dot",)
        ),
        "check -o": Command(command("check", "--format", "sarif", "-o", "FOLDER/c.sarif", script), ("c.sarif",)),
        "check --write-baseline": Command(command("check", "--write-baseline", "FOLDER/b.json", script), ("b.json",)),
        "run --write-baseline": Command(
            command("run", "--lane", "fast", "--write-baseline", "FOLDER/b.json", script), ("b.json",)
        ),
        "diff -o": Command(diff, ("d.md",)),
        "diverge --reproducer": Command(
            lambda folder: code_of(lambda: write_reproducer(str(folder / "r.py"), reproducer, str(inputs.parent))),
            ("r.py", "r.pt"),
        ),
    }


def code_of(do: Callable[[], object]) -> int:
    """The exit code that `irscope.cli.main` gives it."""
    try:
        do()
    except WriteError:
        return 3
    return 0


def prepare(folder: Path, command: Command, is_there: bool) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    if is_there:
        for name in command.writes:
            (folder / name).write_bytes(OLD)
        for name in command.links:
            os.link(folder / command.writes[0], folder / name)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def attempt(command: Command, folder: Path, fault: Fault, kills: bool) -> int:
    """The exit code of the command with the fault; KILLED if the fault killed it."""
    if not kills:
        return faulty(command, folder, fault)
    child = os.fork()
    if child == 0:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        os._exit(faulty(command, folder, fault))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def faulty(command: Command, folder: Path, fault: Fault) -> int:
    with pytest.MonkeyPatch.context() as patch:
        for name, call in {name: fault.over(name) for name in CALLS}.items():
            patch.setattr(os, name, call)
        return command.do(folder)


def cases() -> Iterator[tuple[str, bool]]:
    for name in ("graph -o", "check -o", "check --write-baseline", "run --write-baseline", "diff -o"):
        yield name, True
    for name in ("report -o", "fix --patches", "diverge --reproducer"):
        yield from ((name, True), (name, False))
    for name in ("", ", hard link", ", two files", ", two files, hard link"):
        yield f"fix --apply{name}", True


@pytest.mark.parametrize(("name", "is_there"), list(cases()))
def test_files_are_old_or_new(
    name: str,
    is_there: bool,
    commands: dict[str, Command],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_in_reports = time.gmtime()  # a report says the minute, which may end between two attempts
    monkeypatch.setattr(time, "gmtime", lambda *_: now_in_reports)
    command, folder = commands[name], tmp_path / "user"
    prepare(folder, command, is_there)
    old = contents(folder)
    count = Fault(-1, None)
    expected = attempt(command, folder, count, kills=False)
    new = contents(folder)
    assert new.keys() == {*command.writes, *command.links} and OLD not in new.values()
    assert count.calls >= 4 * len(command.writes)  # open, write, fsync, replace
    for number in range(count.calls):
        for kind in FAULTS:
            prepare(folder, command, is_there)
            code = attempt(command, folder, Fault(number, kind), kills=kind is None)
            capsys.readouterr()
            now, where = contents(folder), (number, kind)
            if kind is not None:
                assert code in DOCUMENTED, where
                assert now == (old if code == 3 else new), where
                assert code in (3, expected), where
                continue
            assert code == KILLED, where
            for file in command.writes:
                recover(str(folder / file))
                assert contents(folder).get(file) in (old.get(file), new[file]), where
            assert all(".irscope-" in left for left in contents(folder).keys() - new.keys()), where
            assert not [left for left in contents(folder) if left.endswith(("-old", "-new"))], where
            for link in command.links:
                assert os.path.samefile(folder / command.writes[0], folder / link)


def test_the_message_of_a_full_disk(
    run: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "g.dot"
    path.write_bytes(OLD)
    monkeypatch.setattr(os, "fsync", Fault(0, errno.ENOSPC).over("fsync"))
    assert main(["graph", run[1], "--stage", "0/0/post-grad-graph", "-o", str(path), "--store", run[0]]) == 3
    assert capsys.readouterr().err == (
        f"irscope: {path} cannot be written: No space left on device. It has its old content. "
        "Free some space there and run the command again.\n"
    )
    assert path.read_bytes() == OLD
