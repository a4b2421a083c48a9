"""The command ``irscope-view``, which ``irscope view`` calls."""

from __future__ import annotations

import argparse
import os
import re
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import Sequence

from irscope import __version__
from irscope.store.store import Store, StoreError, default_path
from irscope.system.streams import carry_out
from irscope.vocabulary.command_line import Parser
from irscope.vocabulary.severity_option import severity_option

_DESCRIPTION = """\
Shows the runs of a store in a web browser: the tree of runs, every stage with its counterparts, graphs, findings,
times, memory.  It serves on 127.0.0.1 to anyone who has the address that it prints, and ends with Ctrl-C.  A kernel's
assembly, machine code and passes are made when they are opened.

On a cluster: `irscope view --no-browser --port 8765` there, `ssh -L 8765:127.0.0.1:8765 HOST` here, and open the address
that it printed.

With --open a file and a line are shown, in the page that is open already where there is one; so an editor can call it
for the line at the cursor."""


def parser() -> Parser:
    """The parser of the command's options."""
    parser = Parser(prog="irscope view", description=_DESCRIPTION)
    parser.add_argument("run", metavar="RUN", nargs="?", help="run ID or prefix (default: the newest)")
    parser.add_argument("--open", metavar="FILE[:LINE]", type=_place, help="show this line of a source file")
    parser.add_argument("--stage", metavar="STAGE", help="show this stage of the run, as in 0/0/output-code")
    parser.add_argument("--port", metavar="N", type=_port, default=0, help="port to listen on (default: any)")
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser; only print the address")
    parser.add_argument(
        "--store", metavar="FILE", default=default_path(), help="the run store (default: %(default)s; IRSCOPE_STORE)"
    )
    parser.add_argument(
        "--python", metavar="PATH", default=os.environ.get("IRSCOPE_PYTHON") or sys.executable,
        help="interpreter whose compilers make assembly and machine code (default: %(default)s; "
        "variable IRSCOPE_PYTHON)",
    )  # fmt: skip
    parser.add_argument("--read-only", action="store_true", help="read only: make no stages, show what is in the store")
    parser.add_argument(
        "--severity", metavar="CODE=LEVEL", action="append", type=severity_option, default=[],
        help="show findings of this code or kind as error, warning, information, hint, or off (default: as "
        ".vscode/settings.json of this folder says)",
    )  # fmt: skip
    parser.add_argument(
        "--baseline", metavar="FILE", help="findings that are known (default: as .vscode/settings.json says)"
    )
    parser.add_argument("--version", action="version", version=f"irscope {__version__}")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Serves until it is interrupted; returns the exit code."""
    given = list(sys.argv[1:] if argv is None else argv)
    return carry_out("irscope view", lambda: _view(parser().read(given)))


def _view(options: argparse.Namespace) -> int:
    from irscope_server.view.view_options import wishes_of  # here: --help needs none of this

    try:
        subject = _subject(options)
        wishes = wishes_of(options.severity, options.baseline, os.getcwd())
    except (LookupError, StoreError) as error:
        print(f"irscope view: {error.args[0]}", file=sys.stderr)
        return 2 if isinstance(error, LookupError) else 3
    from irscope_server.view import address, assets, web
    from irscope_server.view.reader import Reader

    store = os.path.abspath(options.store)
    if options.port == 0 and (found := address.running(store, subject)) is not None:
        running, pages = found
        print(f"irscope view is already running:\n\n  {running.url(subject)}\n", flush=True)
        if pages == 0:
            _open_browser(running, subject, options.no_browser)
        return 0
    if assets.folder() is None:
        print(
            "irscope view: the page is not built. In a checkout of irscope: `npm run build`, then `pip install .`",
            file=sys.stderr,
        )
        return 3
    reader = Reader(store, "" if options.read_only else options.python, wishes)
    try:
        server = web.ViewServer(reader, address.new_token(), options.port)
    except OSError as error:
        print(f"irscope view: {web.free_port_refused(error, options.port)}", file=sys.stderr)
        return 3
    for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        signal.signal(number, _interrupt)
    address.remember(server.address)
    threading.Thread(target=server.serve_forever, name="irscope-view", daemon=True).start()
    try:
        print(f"Open this address (it holds the token; keep it to yourself):\n\n  {server.address.url(subject)}\n")
        print("Ctrl-C stops it.", flush=True)
        _open_browser(server.address, subject, options.no_browser)
        wait_for_signal()
    except KeyboardInterrupt:
        pass
    finally:
        address.forget(server.address)
        server.shutdown()
        server.server_close()
        reader.close()
    return 0


def wait_for_signal() -> None:
    """Blocks the main thread until the handler of a signal raises.

    The system may give a signal to any thread that just begins or ends another one, and then nothing wakes a main thread
    that waits for a lock, where Python's handlers run.  So it waits for the byte that Python writes at each signal.
    """
    ours, pythons = socket.socketpair()
    with ours, pythons:
        pythons.setblocking(False)
        before = signal.set_wakeup_fd(pythons.fileno(), warn_on_full_buffer=False)
        try:
            while True:
                ours.recv(64)
        finally:
            signal.set_wakeup_fd(before)


def _subject(options: argparse.Namespace) -> dict[str, str]:
    """What the page shows first, as its address says it.  Raises LookupError for a run that is not there."""
    subject: dict[str, str] = {}
    if options.run is not None:
        with Store(options.store) as store:
            subject["run"] = store.find_run(options.run)
    if options.stage is not None:
        subject["stage"] = options.stage
    if options.open is not None:
        file, line = options.open
        # As the store has it, also where the locale's encoding of file names is not UTF-8.
        subject["file"] = os.fsencode(os.path.abspath(file)).decode("utf-8", "backslashreplace")
        if line:
            subject["line"] = str(line)
    return subject


def _open_browser(address: object, subject: dict[str, str], unwanted: bool) -> None:
    """Where there is a screen: over ssh a browser in text mode would take the terminal."""
    from irscope_server.view.address import Address, door

    assert isinstance(address, Address)
    has_screen = sys.platform in ("win32", "darwin") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if unwanted or not (has_screen or os.environ.get("BROWSER")):
        return
    try:
        webbrowser.open(door(address, subject))
    except (OSError, webbrowser.Error) as error:
        print(f"No browser could be opened: {error}", file=sys.stderr)


def _place(text: str) -> tuple[str, int]:
    match = re.fullmatch(r"(.+?)(?::(\d+))?(?::\d+)?", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not FILE:LINE")
    return match[1], int(match[2] or 0)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port")
    return int(text)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
