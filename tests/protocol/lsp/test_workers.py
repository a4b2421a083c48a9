"""Which worker a run gets, when there is one, and when it goes; with processes that only wait in place of torch."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from irscope.worker.client import LayerNote, WorkerState
from irscope_server.running.workers import ServerWorker, Workers, package_folders
from support import Instant, late, passed_at_this_load


class Waiting(ServerWorker):
    """Is ready when the test says so."""

    def __init__(self, python: str, env: Mapping[str, str] | None = None) -> None:
        self.python, self.env = python, dict(env or {})
        self.torch, self.reason, self.state, self.unfit = "2.13.0+cpu", "", WorkerState.STARTING, {}
        self.cwd: str | None = None
        self.told: list[LayerNote] = []
        self.may_be_ready = threading.Event()
        self.stop_takes = 0.0
        self._process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)

    def wait_until_ready(self, timeout: float) -> WorkerState:
        if self.state is WorkerState.STARTING and self.may_be_ready.wait(timeout):
            self.state = WorkerState.READY
        return self.state

    def listen(self) -> list[LayerNote]:
        new, self.told = self.told, []
        return new

    def kill(self) -> None:
        assert self._process
        self._process.kill()

    def stop(self) -> None:
        time.sleep(self.stop_takes)
        if self.state in (WorkerState.STARTING, WorkerState.READY):
            self.state = WorkerState.STOPPED
        self.kill()


class Desk:
    def __init__(self) -> None:
        self.made: list[Waiting] = []
        self.changes = 0
        self.ready_at_once = True
        self.workers = Workers(self.changed, self.make)

    def changed(self) -> None:
        self.changes += 1

    def make(self, python: str, env: Mapping[str, str], cwd: str | None) -> ServerWorker:
        worker = Waiting(python, env)
        worker.cwd = cwd
        if self.ready_at_once:
            worker.may_be_ready.set()
        self.made.append(worker)
        return worker

    def run(self, env: Mapping[str, str] | None = None, cancel: threading.Event | None = None) -> object:
        with self.workers.for_run(sys.executable, env, cancel or threading.Event()) as worker:
            return worker


@pytest.fixture
def desk() -> object:
    desk = Desk()
    yield desk
    desk.workers.close()


def until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    begun = Instant()
    while not condition():
        assert not late(begun, seconds)
        time.sleep(0.01)


def test_one_worker_serves_all_runs_of_an_environment(desk: Desk) -> None:
    desk.workers.warm(sys.executable, None)
    first = desk.run()
    assert first is not None and desk.run({}) is first and len(desk.made) == 1
    assert desk.run({"A": "1"}) is not first and len(desk.made) == 2


def test_the_working_folder_counts_where_pythonpath_starts_at_it(desk: Desk, tmp_path: Path) -> None:
    def run(env: Mapping[str, str], cwd: str) -> object:
        with desk.workers.for_run(sys.executable, env, threading.Event(), cwd=cwd) as worker:
            return worker

    absolute = {"PYTHONPATH": str(tmp_path)}
    assert run(absolute, "/a") is run(absolute, "/b") and desk.made[0].cwd is None
    for relative in ("lib", f"{tmp_path}:", f"{tmp_path}:.."):
        env = {"PYTHONPATH": relative}
        first = run(env, "/a")
        assert run(env, "/a") is first and run(env, "/b") is not first
    assert desk.made[-1].cwd == "/b"


def test_the_setting_for_layers_reaches_the_worker(desk: Desk) -> None:
    assert desk.run() is desk.made[0] and desk.made[0].layered is True
    desk.workers.layers = False
    assert desk.run() is desk.made[0] and desk.made[0].layered is False


def test_a_run_waits_for_a_worker_that_starts_and_can_be_cancelled_meanwhile(desk: Desk) -> None:
    desk.ready_at_once = False
    cancel = threading.Event()
    got: list[object] = []
    waiting = threading.Thread(target=lambda: got.append(desk.run(cancel=cancel)))
    waiting.start()
    until(lambda: bool(desk.made))
    time.sleep(0.2)
    assert got == [] and desk.workers.state().state is WorkerState.STARTING  # type: ignore[union-attr]
    begun = Instant()
    cancel.set()
    waiting.join(60)
    assert got == [None] and passed_at_this_load(begun) < 0.5
    threading.Timer(0.1, desk.made[0].may_be_ready.set).start()
    assert desk.run() is desk.made[0]
    until(lambda: desk.workers.state().text == "Ready (torch 2.13.0+cpu)")  # type: ignore[union-attr]


def test_one_that_died_is_replaced_by_the_next_run_only(desk: Desk) -> None:
    desk.run()
    desk.made[0].kill()
    until(lambda: desk.workers.state().state is WorkerState.CRASHED)  # type: ignore[union-attr]
    desk.workers.warm(sys.executable, None)
    assert len(desk.made) == 1
    assert desk.run() is desk.made[1]


def test_one_that_refused_is_left_alone(desk: Desk) -> None:
    desk.ready_at_once = False
    desk.workers.warm(sys.executable, None)
    until(lambda: bool(desk.made))
    desk.made[0].state = WorkerState.REFUSED
    assert desk.run() is None and desk.run() is None and len(desk.made) == 1
    assert desk.workers.state() is None, "silent"


def test_idle_ones_are_stopped(desk: Desk) -> None:
    desk.workers.idle_seconds = 60
    desk.run()
    again = desk.workers.sweep()
    assert again is not None and 0 < again <= 60
    with desk.workers.for_run(sys.executable, None, threading.Event()):
        desk.workers.idle_seconds = 1e-6
        time.sleep(0.01)
        desk.workers.sweep()
        assert desk.made[0].state is WorkerState.READY, "a run goes on in it"
    time.sleep(0.01)
    assert desk.workers.sweep() is None
    until(lambda: desk.made[0].state is WorkerState.STOPPED)
    desk.workers.idle_seconds = 0
    assert desk.workers.sweep() is None


def test_those_of_other_settings_go(desk: Desk) -> None:
    desk.run({"A": "1"})
    desk.run({"A": "2"})
    desk.workers.keep_only([(sys.executable, {"A": "2"}, None)])
    until(lambda: desk.made[0].state is WorkerState.STOPPED)
    assert desk.made[1].state is WorkerState.READY


def test_two_at_a_time(desk: Desk) -> None:
    for number in range(3):
        desk.run({"A": str(number)})
    until(lambda: desk.made[0].state is WorkerState.STOPPED)
    assert [worker.state for worker in desk.made[1:]] == [WorkerState.READY] * 2


def test_a_package_is_installed(desk: Desk, tmp_path: Path) -> None:
    packages = tmp_path / "site-packages"
    packages.mkdir()
    env = {"PYTHONPATH": str(packages)}
    assert str(packages) in package_folders(sys.executable, env)
    desk.run(env)
    until(lambda: desk.changes >= 2)  # it is ready, and the folders have been looked up
    (packages / "new").mkdir()
    assert desk.run(env) is desk.made[1]
    until(lambda: desk.made[0].state is WorkerState.STOPPED)


def test_nothing_starts_after_the_end(desk: Desk) -> None:
    desk.workers.close()
    assert desk.run() is None and desk.made == []


def test_an_interpreter_that_is_none() -> None:
    workers = Workers()
    with workers.for_run("/nowhere/python", None, threading.Event()) as worker:
        assert worker is None
    workers.close()
    assert package_folders("/nowhere/python", {}) == []


def test_the_end_waits_for_workers_that_are_being_stopped_already(desk: Desk) -> None:
    desk.workers.warm(sys.executable, None)
    until(lambda: len(desk.made) == 1)
    desk.made[0].stop_takes = 0.3
    desk.workers.stop()
    before = desk.made[0].state
    assert before is not WorkerState.STOPPED
    desk.workers.close()
    assert desk.made[0].state is WorkerState.STOPPED


def test_the_end_waits_for_a_worker_that_is_about_to_start(desk: Desk) -> None:
    may_start = threading.Event()
    make = desk.make

    def late_make(python: str, env: Mapping[str, str], cwd: str | None) -> ServerWorker:
        may_start.wait(10)
        return make(python, env, cwd)

    desk.workers._make = late_make
    desk.workers.warm(sys.executable, None)
    threading.Timer(0.3, may_start.set).start()
    desk.workers.close()
    assert [worker.state for worker in desk.made] == [WorkerState.STOPPED]
