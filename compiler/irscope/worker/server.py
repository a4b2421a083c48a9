"""The fork server: imports torch and its compiler, runs no operation, and forks itself for each run.

It gets requests over one socket, each with the descriptors of its run (messages, status, stdout, stderr).  It answers
with a line when it is ready, and with a line when something happens to a layer; everything else goes through the run's
own descriptors.  It ends, with all its runs, when the socket closes: the process that started it is gone.

A layer is the same loop in a fork, with the worker at the other end of its socket.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
from typing import Any

from irscope.internals.first_compile import MODULES
from irscope.runner.torch_here import find_torch
from irscope.system.ending import end_all_below
from irscope.system.last_words import Ending, LastWords, encoded, share
from irscope.system.warden import adopt_orphans
from irscope.worker import cuda
from irscope.worker.building import Built
from irscope.worker.child import run_in_child
from irscope.worker.errand import Errand
from irscope.worker.layers import Layers, build_layer
from irscope.worker.machine_facts import find_out, learn, prepare_deep_runs
from irscope.worker.modules import AskedNames
from irscope.worker.spare import Range, Spare, pages_of_a_compile, pages_told
from irscope.worker.warmup import can_rehearse, warm_up
from irscope.worker.wire import receive

_FDS = 4
_TRY_AFTER_SECONDS = 0.2
"""After so long without a request it is found out which pages a compile writes to."""
_FIND_OUT_AFTER_SECONDS = 2.0
"""After so long without a request more is found out about the machine; patterns take 0.4 s, in which nothing is heard."""
_KEEP_SECONDS = 600
"""After so long without a request the spare goes, which holds some 50 MB of its own, until there is another."""


def serve(connection: socket.socket) -> None:
    """Serves until the connection closes.  In the child of a fork it returns the way a script's process ends."""
    sys.path[0] = os.devnull  # the folder of boot.py has no business on the path of others; a run puts its own there
    found = find_torch()
    if isinstance(found, str):
        _say(connection, {"state": "refused", "reason": found})
        return
    with AskedNames() as asked:
        problem = _import_all()
    if problem:
        _say(connection, {"state": "refused", "reason": problem})
        return
    gc.collect()
    gc.freeze()  # so that the children's collector does not touch, and thereby copy, the pages that they share
    _say(connection, {"state": "ready", "torch": found[1]})
    standard = {name.partition(".")[0] for name in sys.modules} & sys.stdlib_module_names
    names = {*asked.names, *standard}  # what irscope has imported, torch has not looked for
    if not ForkServer(connection, names, Layers(lambda note: _say(connection, note))).serve():
        os._exit(0)  # the layers end when their sockets close, so at once


def _import_all() -> str:
    with cuda.left_alone():
        try:
            importlib.import_module("torch")
        except Exception as error:  # noqa: BLE001  a broken installation is told to the user
            return _broken(error)
        with cuda.not_counted():
            try:
                for name in MODULES:
                    importlib.import_module(name)
            except Exception as error:  # noqa: BLE001  likewise
                return _broken(error)
            warm_up()
    if cuda.is_unusable_in_forks():
        return (
            "CUDA is in use after the mere import of torch, so it cannot be forked; each run starts a separate process."
        )
    return ""


def _broken(error: Exception) -> str:
    return f"PyTorch in {sys.executable} cannot be imported: {type(error).__name__}: {error}"


def _say(connection: socket.socket, message: dict[str, Any]) -> None:
    """The client may be gone or may not have read for long: neither must delay a run."""
    with contextlib.suppress(OSError):
        connection.send((json.dumps(message) + "\n").encode(), socket.MSG_DONTWAIT)


class ForkServer:
    """Forks itself for each request that comes over a socket.

    Args:
        names: Top-level modules that were looked for while everything was imported.
        layers: None in a layer.
        built: What a layer has imported.
    """

    def __init__(
        self, connection: socket.socket, names: set[str], layers: Layers | None, built: Built | None = None
    ) -> None:
        self._connection, self._names, self._layers = connection, names, layers
        self._environment = built.environment if built is not None else {}
        self._status_of: dict[int, tuple[int, LastWords]] = {}
        """For each run's process: where its status goes, and the memory with its last words."""
        self._wake, self._awake = _on_child_exit()
        self._leaving = False
        self._spare, self._wants_spare = Spare(), True
        self._pages: list[Range] | None = None if can_rehearse() else []
        self._errand: Errand | None = None
        self._knows_machine = not can_rehearse()
        adopt_orphans()

    def serve(self) -> bool:
        """Serves until the other side is gone, and then ends all runs; true in the child of a fork that has run."""
        while not (self._leaving and not self._status_of):
            if self._layers is not None and not self._status_of and not self._layers.is_building:
                forked = self._layers.start()
                if forked is not None:
                    return self._become_layer(*forked)
            if self._wants_spare and self._spare.pid is None and not self._status_of and self._pages is not None:
                request = self._spare.make(self._let_go, self._pages)
                if request is not None:
                    run_in_child(*request, self._names, self._environment)
                    return True
            if self._connection.fileno() in self._hear():
                received = receive(self._connection)
                if received is None:
                    break
                if self._take(*received):
                    return True
        end_all_below()
        return False

    def _hear(self) -> list[int]:
        """Waits until something is readable, or nothing was for long; takes in all but a new request.

        Returns the descriptors that were readable.
        """
        watched: dict[int, Any] = {self._wake: None, self._connection.fileno(): None}
        if self._errand is not None:
            watched[self._errand.fd] = None
        if self._layers is not None:
            watched |= {layer.connection.fileno(): layer for layer in self._layers.all}
        readable, _, _ = select.select(list(watched), [], [], self._patience())
        if not readable:
            self._idle()
        if self._wake in readable:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake, 4096)
            self._reap()
        if self._errand is not None and self._errand.fd in readable and (told := self._errand.hear()) is not None:
            self._errand = None
            if self._pages is None:
                self._pages = pages_told(told)
            else:
                learn(told)
                self._spare.close()  # the next one knows it, too
        for fd in readable:
            if (layer := watched[fd]) is not None and self._layers is not None and layer in self._layers.all:
                self._layers.hear(layer)
        return readable

    def _patience(self) -> float | None:
        """Seconds after which there is something to do if nothing is heard."""
        if self._status_of or self._errand is not None:
            return None
        if self._pages is None:
            return _TRY_AFTER_SECONDS
        if not self._knows_machine:
            return _FIND_OUT_AFTER_SECONDS
        return _KEEP_SECONDS if self._spare.pid is not None else None

    def _idle(self) -> None:
        if self._pages is None:
            self._errand = Errand(self._let_go, pages_of_a_compile)
        elif not self._knows_machine:
            with AskedNames() as asked:
                prepare_deep_runs()
            self._names |= asked.names
            gc.collect()
            gc.freeze()
            self._errand, self._knows_machine = Errand(self._let_go, find_out), True
        else:
            self._wants_spare = False
            self._spare.close()

    def _take(self, message: dict[str, Any], fds: list[int]) -> bool:
        """Starts a run; true in its process, once it has run."""
        if message.get("drop"):
            self._leaving = True
        if len(fds) == _FDS:
            self._wants_spare = True
            if self._layers is not None and message.get("layers") and self._layers.take(message, fds):
                status = None
            else:
                words = self._spare.words
                if (pid := self._spare.take(message, fds)) is None or words is None:
                    words = share()
                    pid = os.fork()
                if pid == 0:
                    self._let_go()
                    run_in_child(message, fds, self._names, self._environment)
                    return True
                status = fds[1]
                self._status_of[pid] = status, words
            fds = [fd for fd in fds if fd != status]
        for fd in fds:
            os.close(fd)
        return False

    def _let_go(self) -> None:
        """In a fork: closes what belongs to the server."""
        for fd in (self._wake, self._awake, *(fd for fd, _ in self._status_of.values())):
            os.close(fd)
        self._connection.close()
        self._spare.close()
        if self._errand is not None:
            os.close(self._errand.fd)
        for layer in self._layers.all if self._layers is not None else ():
            layer.connection.close()

    def _become_layer(self, wanted: Any, connection: socket.socket) -> bool:
        self._layers = None  # `Layers.start` has closed what belonged to them
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._let_go()
        built = build_layer(wanted, connection)
        if built is not None and ForkServer(connection, {*self._names, *built.names}, None, built).serve():
            return True
        os._exit(0)  # functions at exit are the runs', not the layer's

    def _reap(self) -> None:
        """Writes the exit code of each child that has ended into its run's status pipe."""
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                break
            if ended is None:
                break
            pid = ended.si_pid
            run = self._status_of.pop(pid, None)
            ending = run[1].ending_of(pid) if run is not None else Ending()
            _, status = os.waitpid(pid, 0)
            if self._layers is not None and self._layers.ended(pid):
                continue
            if pid == self._spare.pid:
                self._spare.close()
                self._wants_spare = False  # something ends it; not one after the other, then
            if run is not None:
                with contextlib.suppress(OSError):
                    os.write(run[0], f"{os.waitstatus_to_exitcode(status)} ".encode() + encoded(ending))
                os.close(run[0])
        if not self._status_of:  # what is left now is what runs have left behind: daemons that got away from them
            ours = {layer.pid for layer in self._layers.all} if self._layers is not None else set()
            ours |= {one.pid for one in (self._spare, self._errand) if one is not None and one.pid is not None}
            end_all_below(but=ours)


def _on_child_exit() -> tuple[int, int]:
    """A descriptor that becomes readable when a child ends."""
    wake, awake = os.pipe()
    os.set_blocking(awake, False)
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(awake, warn_on_full_buffer=False)
    return wake, awake


def main(fd: int) -> None:
    """Entry point of ``boot.py worker FD``."""
    with socket.socket(fileno=fd) as connection:
        serve(connection)
