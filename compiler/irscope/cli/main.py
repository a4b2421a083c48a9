"""The command ``irscope``: what it does, and its exit codes."""

from __future__ import annotations

import gc
import importlib
import sqlite3
import sys
from argparse import Namespace
from collections.abc import Sequence

from irscope.system.streams import carry_out, complain


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit code; raises SystemExit(2) for wrong usage."""
    given = list(sys.argv[1:] if argv is None else argv)
    return carry_out("irscope", lambda: _command(given))


def _command(given: list[str]) -> int:
    if given[:1] == ["view"]:  # its options are the server's own
        from irscope.cli import viewing

        return viewing.view(given[1:])
    collects = gc.isenabled()
    gc.disable()  # of what is imported nothing becomes garbage
    try:
        return _carried_out(given, collects)
    finally:
        if collects:  # a command may have stopped it by itself
            gc.enable()


def _carried_out(given: list[str], collects: bool) -> int:
    from irscope.cli.arguments import read  # here: what fails while it is imported has an exit code, too
    from irscope.cli.commands import COMMANDS
    from irscope.store.store import StoreError
    from irscope.usercode.writing import WriteError
    from irscope.vocabulary.visible import printable

    options = read(given)
    _recover_files(options)
    module, function = options.do
    try:
        command = getattr(importlib.import_module(f"irscope.cli.{module}"), function)
        if collects and COMMANDS[options.command].runs_script:
            gc.enable()  # of others all that they read is in use until the command ends, a second later
        return int(command(options))
    except StoreError as error:
        complain(f"irscope: {printable(str(error))}")
        return 3
    except sqlite3.Error as error:
        complain(f"irscope: The run store {options.store} cannot be read: {printable(str(error))}.")
        return 3
    except LookupError as error:
        if isinstance(error, (KeyError, IndexError)):
            raise  # a fault of irscope's own, or a damaged store
        complain(f"irscope: {printable(str(error.args[0] if error.args else error))}")
        return 2
    except WriteError as error:
        complain(f"irscope: {printable(str(error))}")
        return 3
    except OSError as error:
        if not isinstance(error.filename, str):
            raise
        complain(f"irscope: {printable(error.filename)} cannot be used: {error.strerror}.")
        return 3


def _recover_files(options: Namespace) -> None:
    """Before a command reads a file that another one was killed while it wrote it: gives it its old content back."""
    from irscope.usercode.writing import WriteError, recover
    from irscope.vocabulary.visible import printable

    scripts = getattr(options, "scripts", None) or [getattr(options, "script", None)]
    for path in filter(None, [*scripts, getattr(options, "baseline", None)]):
        try:
            said = recover(path)
        except WriteError as error:
            said = str(error)
        except OSError as error:
            said = f"{path} cannot be given the content back that it had before a command was killed: {error.strerror}."
        if said:
            complain(f"irscope: {printable(said)}")
