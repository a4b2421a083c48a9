"""Fork servers, so that a run starts at once: one per interpreter and environment, started early, kept for a while."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from irscope.system.ending import end_group
from irscope.vocabulary.units import duration, size
from irscope.worker.client import Worker, WorkerState

log = logging.getLogger(__name__)

_MOST = 2
"""Workers at a time, each with a few hundred megabytes of torch in it; the one unused for longest goes first."""
_WAIT = 0.05
"""Seconds between two looks at whether a run that waits for its worker was cancelled."""
_LONGEST_WAIT = 90.0
"""Seconds after which a run does not wait for a worker that is starting any more."""
_LONGEST_STOP = 3.0
"""Seconds that the end of this server waits for the end of a worker: one that does not listen is killed after half a second."""

Key = tuple[str, tuple[tuple[str, str], ...], str]
"""The interpreter, the variables on top of this process's environment, and the working folder where it matters."""


def key_of(python: str, env: Mapping[str, str] | None, cwd: str | None = None) -> Key:
    """The working folder matters to what a worker imports only where PYTHONPATH has a relative entry.

    The interpreter makes such entries absolute when it starts.  A run takes everything else from its working folder
    after the fork, which changes to it.
    """
    found = {**os.environ, **(env or {})}.get("PYTHONPATH", "")
    relative = found and not all(os.path.isabs(entry) for entry in found.split(os.pathsep))
    return python, tuple(sorted((env or {}).items())), (cwd or os.getcwd()) if relative else ""


class ServerWorker(Worker):
    """A worker that knows its torch, and tells when it has died."""

    def __init__(self, python: str, env: Mapping[str, str] | None = None, cwd: str | None = None) -> None:
        self.torch = ""
        super().__init__(python, env, cwd)

    def _heard(self, line: bytes) -> None:
        super()._heard(line)
        if line:
            self.torch = str(json.loads(line).get("torch", ""))

    def stop(self) -> None:
        """Like `Worker.stop`, but at once while it is still importing torch: it has no runs then, and does not
        listen."""
        if self.state is WorkerState.STARTING and self._process is not None:
            end_group(self._process.pid)
        super().stop()

    def wait_until_dead(self) -> None:
        """Blocks until its process has ended, however that came."""
        if self._process is not None:
            self._process.wait()

    def is_dead(self) -> bool:
        """Whether the process was started and has ended."""
        return self._process is not None and self._process.poll() is not None


@dataclass
class _Entry:
    """A worker of a key.  ``worker`` is there when its process was started."""

    key: Key
    started: threading.Event = field(default_factory=threading.Event)
    worker: ServerWorker | None = None
    packages: dict[str, int] = field(default_factory=dict)
    """Modification times of the folders of installed packages when it had imported torch."""
    used: float = field(default_factory=time.monotonic)
    busy: int = 0
    """Runs that wait for it or go on in it."""
    dropped: bool = False

    @property
    def state(self) -> WorkerState:
        return WorkerState.STARTING if self.worker is None else self.worker.state


@dataclass(frozen=True)
class WorkersState:
    """The workers as one state for the editor: the one that matters most, and in words."""

    state: WorkerState
    text: str


class Workers:
    """All workers of the server.  Any thread may use it.

    Args:
        changed: Called when a state has changed, from whatever thread.
        make: Makes a worker, for tests.
    """

    def __init__(
        self,
        changed: Callable[[], None] = lambda: None,
        make: Callable[[str, Mapping[str, str], str | None], ServerWorker] = ServerWorker,
    ) -> None:
        self.layers = True
        """Whether runs may be in layers of a worker, which have the imports of a script done already."""
        self.idle_seconds = 1800.0
        """A worker unused for so long is stopped by `sweep`; 0: never."""
        self.changed = changed
        self._make = make
        self._lock = threading.Lock()
        self._entries: dict[Key, _Entry] = {}
        self._stopping: set[threading.Thread] = set()
        self._closed = False

    def warm(self, python: str, env: Mapping[str, str] | None, cwd: str | None = None) -> None:
        """Sees to it that there is a worker, and returns at once; one that refused or crashed is left alone."""
        self._entry(key_of(python, env, cwd), again=())

    @contextlib.contextmanager
    def for_run(
        self,
        python: str,
        env: Mapping[str, str] | None,
        cancel: threading.Event,
        waiting: Callable[[], None] = lambda: None,
        cwd: str | None = None,
    ) -> Iterator[Worker | None]:
        """A worker for the time of a run; None if there cannot be one or the run was cancelled.

        One that is starting is waited for: a fresh process would have to import torch, too, and begin later.

        Args:
            waiting: Called once if it has to be waited for.
            cwd: The run's working folder; None: this process's.
        """
        entry = self._entry(key_of(python, env, cwd), again=(WorkerState.CRASHED,))
        if entry is None:
            yield None
            return
        with self._lock:
            entry.busy += 1
        try:
            if entry.state is WorkerState.STARTING:
                waiting()
            until = time.monotonic() + _LONGEST_WAIT
            while (
                entry.state is WorkerState.STARTING
                and not cancel.is_set()
                and not entry.dropped
                and time.monotonic() < until
            ):
                if entry.started.wait(_WAIT) and entry.worker is not None:
                    entry.worker.wait_until_ready(_WAIT)
            worker = entry.worker if entry.state is WorkerState.READY and not cancel.is_set() else None
            if worker is not None:
                worker.layered = self.layers
            yield worker
        finally:
            self._log_layers(entry)
            with self._lock:
                entry.busy -= 1
                entry.used = time.monotonic()

    def _log_layers(self, entry: _Entry) -> None:
        """What has become of layers since the last run, and how much memory the worker holds with them."""
        notes = entry.worker.listen() if entry.worker is not None else []
        for note in notes:
            log.info("The layer `%s` is %s after %s. %s", note.layer, note.state, duration(note.seconds), note.reason)
        if notes and entry.worker is not None:
            held = size(entry.worker.memory())
            log.info("The worker in %s holds %s with %d layers.", entry.key[0], held, len(entry.worker.layers()))

    def keep_only(self, wanted: Iterable[tuple[str, Mapping[str, str] | None, str | None]]) -> None:
        """Stops the workers of other interpreters, environments and working folders, for the settings have changed."""
        keys = {key_of(*one) for one in wanted}
        with self._lock:
            gone = [self._entries.pop(key) for key in list(self._entries) if key not in keys]
        self._drop(gone)

    def sweep(self) -> float | None:
        """Stops what has been unused for too long; says in how many seconds to look again, if at all."""
        if not self.idle_seconds:
            return None
        now = time.monotonic()
        with self._lock:
            idle = [e for e in self._entries.values() if not e.busy and now - e.used >= self.idle_seconds]
            for entry in idle:
                del self._entries[entry.key]
            left = [self.idle_seconds if e.busy else e.used + self.idle_seconds - now for e in self._entries.values()]
        for entry in idle:
            log.info("Stopped the worker in %s after %g idle minutes.", entry.key[0], self.idle_seconds / 60)
        self._drop(idle)
        return max(min(left), 0.01) if left else None

    def stop(self) -> None:
        """Stops all of them, and their runs; they come back when they are asked for."""
        with self._lock:
            gone, self._entries = list(self._entries.values()), {}
        self._drop(gone)

    def close(self) -> None:
        """Stops all of them for good, and waits for that: also for those that were being stopped already.

        A process tree that is ended halfway is one of stopped processes, which nobody ends any more.
        """
        with self._lock:
            self._closed = True
        self.stop()
        with self._lock:
            stopping = [*self._stopping]
        for thread in stopping:
            thread.join(_LONGEST_STOP)

    def state(self) -> WorkersState | None:
        """None if there is no worker."""
        with self._lock:
            entries = sorted(self._entries.values(), key=lambda entry: -entry.used)
        for state in (WorkerState.STARTING, WorkerState.CRASHED, WorkerState.READY):
            for entry in entries:
                if entry.state is state:
                    return WorkersState(state, _text(entry))
        return None

    # --- one worker ---------------------------------------------------------------------------------------------------

    def _entry(self, key: Key, again: tuple[WorkerState, ...]) -> _Entry | None:
        """The entry of a key, a new one if none can still be used."""
        stale: _Entry | None = None
        with self._lock:
            if self._closed:
                return None
            known = self._entries.get(key)
            if known is not None:
                if known.worker is not None and known.state is WorkerState.READY and known.worker.is_dead():
                    known.worker.state = WorkerState.CRASHED
                changed = known.state in (WorkerState.READY, WorkerState.REFUSED) and _changed(known.packages)
                if known.state not in again and not changed:
                    known.used = time.monotonic()
                    return known
                stale = known
                if changed:
                    log.info("The worker in %s restarts: an installed package has changed.", key[0])
            entry = self._entries[key] = _Entry(key)
            extra = sorted((e for e in self._entries.values() if e is not entry and not e.busy), key=lambda e: e.used)
            extra = extra[: max(0, len(self._entries) - _MOST)]
            for one in extra:
                del self._entries[one.key]
        self._drop([*extra, *([stale] if stale else [])])
        threading.Thread(target=self._live, args=(entry,), name="irscope-worker", daemon=True).start()
        self.changed()
        return entry

    def _live(self, entry: _Entry) -> None:
        """The life of a worker, in its own thread: start, readiness, and its end whenever it comes."""
        python, env = entry.key[0], dict(entry.key[1])
        worker = self._make(shutil.which(python) or python, env, entry.key[2] or None)
        entry.worker = worker
        entry.started.set()
        if entry.dropped:
            worker.stop()
            return
        while worker.wait_until_ready(_WAIT) is WorkerState.STARTING:
            time.sleep(0.001)  # so that other threads can look
        if worker.state in (WorkerState.READY, WorkerState.REFUSED):
            entry.packages = {folder: _modified(folder) for folder in package_folders(worker.python, env)}
        if worker.state is WorkerState.READY:
            log.info("A worker is ready: %s, torch %s", python, worker.torch)
        elif worker.state is WorkerState.REFUSED:
            log.info("No worker in %s: %s", python, worker.reason)
        self.changed()
        worker.wait_until_dead()
        if worker.state not in (WorkerState.STOPPED, WorkerState.REFUSED):
            worker.state = WorkerState.CRASHED
            worker.reason = worker.reason or "The worker ended unexpectedly."
            log.warning("The worker in %s has crashed: %s The next run starts another.", python, worker.reason)
        if worker.state is not WorkerState.STOPPED:
            worker.stop()  # lets go of its socket; the state stays
        if not entry.dropped:
            self.changed()

    def _drop(self, entries: Iterable[_Entry]) -> None:
        """Stops workers, in threads: a worker may take half a second to end."""
        for entry in entries:
            entry.dropped = True
            thread = threading.Thread(target=self._stop_one, args=(entry,), name="irscope-worker-stop", daemon=True)
            with self._lock:
                self._stopping.add(thread)
            thread.start()

    def _stop_one(self, entry: _Entry) -> None:
        # Its process may be starting: the thread that starts it would stop it, but this server may be gone before that.
        if entry.started.wait(_LONGEST_STOP) and entry.worker is not None:
            entry.worker.stop()
        with self._lock:
            self._stopping.discard(threading.current_thread())
        if not self._closed:
            self.changed()


def _text(entry: _Entry) -> str:
    if entry.state is WorkerState.STARTING:
        return "Starting: torch is being imported"
    assert entry.worker is not None
    if entry.state is WorkerState.READY:
        return f"Ready (torch {entry.worker.torch})" if entry.worker.torch else "Ready"
    return f"{entry.worker.reason} The next run starts another."


# --- installed packages -----------------------------------------------------------------------------------------------


def package_folders(python: str, env: Mapping[str, str]) -> list[str]:
    """The folders of an interpreter that hold installed packages, as it reports them; empty if it does not run."""
    code = "import sys, json; sys.stdout.write(json.dumps(sys.path))"
    try:
        done = subprocess.run(
            [python, "-c", code],
            env={**os.environ, **env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=20,
            check=True,
        )
        paths = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return []
    return [path for path in paths if os.path.basename(path) in ("site-packages", "dist-packages")]


def _changed(packages: Mapping[str, int]) -> bool:
    return any(_modified(folder) != then for folder, then in packages.items())


def _modified(folder: str) -> int:
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return 0
