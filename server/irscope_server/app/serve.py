"""Runs the server on this process's standard input and output, and ends the process."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import functools
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable

from irscope.store.file import STORE_LOG
from irscope.system.commands import leave_nothing
from lsprotocol import types

from irscope_server.app.features import make_server
from irscope_server.app.server import IrscopeServer
from irscope_server.base.transport import Writer, read_forever, take_protocol_streams
from irscope_server.running.runs import Execute


def serve_stdio(execute: Execute | None = None) -> None:
    """Serves until ``exit`` or the end of standard input.  Does not return.

    The process ends by `os._exit`, once all runs are stopped: threads that read the store or wait for a killed
    process must not hold up an editor that closes.
    """
    _give_large_memory_back()
    stdin, stdout = take_protocol_streams()
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    server = make_server(execute)
    _log_to(server, loop)
    server.protocol.set_writer(Writer(stdout))
    ended = asyncio.Event()
    code = 1
    try:
        on_end_signals(lambda: loop.call_soon_threadsafe(ended.set))
        read_forever(stdin, loop, server.protocol.receive, ended.set)
        loop.run_until_complete(ended.wait())
    except SystemExit as stop:  # raised by pygls' handler of `exit`: 0 after a shutdown, else 1
        code = stop.code if isinstance(stop.code, int) else 1
    except KeyboardInterrupt:
        pass
    finally:
        server.close()
        leave_nothing()
        os._exit(code)


class ClientLog(logging.Handler):
    """Sends irscope's own log to the client's window, from whatever thread.

    What the loop's thread logs is sent at once, so that it comes before what that thread tells the client next.
    """

    _TYPES = ((logging.ERROR, types.MessageType.Error), (logging.WARNING, types.MessageType.Warning))

    def __init__(self, server: IrscopeServer, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(logging.INFO)
        self._server, self._loop = server, loop
        self._sends = False

    def emit(self, record: logging.LogRecord) -> None:
        """Sends one entry."""
        kind = next((kind for level, kind in self._TYPES if record.levelno >= level), types.MessageType.Info)
        send = functools.partial(self._server.window_log_message, types.LogMessageParams(kind, self.format(record)))
        if record.name == STORE_LOG:  # a file of the user's was moved
            send = functools.partial(self._server.show_message, self.format(record))
        if self._is_in_loop() and not self._sends:  # an error in sending is logged, too
            self._sends = True
            try:
                send()
            except Exception:  # noqa: BLE001  who logs something is not to fail
                self.handleError(record)
            finally:
                self._sends = False
            return
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(send)

    def _is_in_loop(self) -> bool:
        try:
            return asyncio.get_running_loop() is self._loop
        except RuntimeError:
            return False


def _log_to(server: IrscopeServer, loop: asyncio.AbstractEventLoop) -> None:
    """irscope's log goes to the client; pygls' only where it is serious, and to standard error.

    pygls logs whole messages at INFO, a traceback for each request that fails, and an error in its sending that was
    sent would be the next error.  Few clients read standard error, and a full pipe would stop the server.
    """
    logging.basicConfig(stream=sys.stderr, level=logging.CRITICAL, format="%(name)s: %(message)s")
    handler = ClientLog(server, loop)
    for name, level in (("irscope_server", logging.INFO), ("irscope", logging.WARNING)):
        ours = logging.getLogger(name)
        ours.setLevel(level)
        ours.propagate = False
        ours.addHandler(handler)


_M_MMAP_THRESHOLD = -3  # of malloc.h


def _give_large_memory_back() -> None:
    """Lets glibc take each block of over half a megabyte from the system and give it back when it is freed.

    By itself it raises that bound to the largest block that was ever freed.  What packs the texts of a run takes 32 MB
    in one piece, in its own thread each time; of that, and of the texts, some 25 MB stayed after each run.
    """
    with contextlib.suppress(OSError, AttributeError, TypeError):  # another C library; Windows
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, 1 << 19)


PATIENCE_SECONDS = 5.0
"""For an orderly end; what is still running then is stopped by its own watcher, as after a crash."""


def on_end_signals(end: Callable[[], object], patience: float = PATIENCE_SECONDS) -> None:
    """Calls ``end`` from a separate thread when SIGTERM, SIGINT or SIGHUP arrives; ends the process where that does not.

    A handler in Python runs between two instructions of the main thread, so never while that is inside of a call that
    takes long.  The signal's number is written into a pipe at once (`signal.set_wakeup_fd`).  Call it from the main thread.
    """
    if os.name != "posix":  # the wakeup descriptor must be a socket there
        return
    numbers = {signal.SIGTERM, signal.SIGINT, getattr(signal, "SIGHUP", signal.SIGTERM)}
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in numbers:
        with contextlib.suppress(ValueError, OSError):
            signal.signal(number, lambda *_: None)

    def wait() -> None:
        while (told := os.read(reading, 1)) and told[0] not in numbers:
            pass
        with contextlib.suppress(RuntimeError):  # the loop is closed
            end()
        time.sleep(patience)
        os._exit(1)

    threading.Thread(target=wait, name="irscope-end", daemon=True).start()
