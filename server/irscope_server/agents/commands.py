"""Commands of irscope, each in its own process: a stored run from elsewhere can neither block nor end the server."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import sys
from collections.abc import Sequence
from typing import Any

import irscope
from irscope.lowering import made_on_demand
from irscope.store.store import Store, StoreError
from irscope.system.ending import end_tree

import irscope_server
from irscope_server.agents.answers import ToolFailure, marked

_ROOTS = [os.path.dirname(package.__path__[0]) for package in (irscope, irscope_server)]
# Not `-m`: that looks for modules in the working folder first, where anybody's file may lie.
_START = f"import sys; sys.path[:1] = {_ROOTS!r}; sys.argv[0] = 'irscope'; "
PROGRAM = (sys.executable, "-c", f"{_START}from irscope.cli import main; sys.exit(main())")
"""The command irscope, out of the folders that this process has it from."""
ADAPTER = (sys.executable, "-c", f"{_START}from irscope_server.dap.__main__ import main; main([])")

READ_SECONDS = 60.0
_MOST_BYTES = 16_000_000
"""Of an output; what comes after is read and dropped."""
_MOST_OF_ERROR = 1000
_LONGEST_WORD = 4000
_NOT_ALLOWED = (
    "This would run code, which is not allowed here. Ask the user to start the server with `irscope mcp --allow-run` "
    "(in VS Code: the setting irscope.agents.allowRun). Stored runs can be read without it: call `run` without a script."
)


class Commands:
    """Starts commands on one store.

    Parameters
    ----------
    python
        The interpreter that runs scripts.
    allow_run
        Whether code may be run.
    """

    def __init__(self, store: str, python: str, allow_run: bool) -> None:
        self.store, self.python, self.allow_run = os.path.abspath(os.path.expanduser(store)), python, allow_run

    def need_permission(self) -> None:
        """Raises ToolFailure if no code may be run."""
        if not self.allow_run:
            raise ToolFailure(_NOT_ALLOWED)

    def run_id(self, name: str) -> str:
        """The ID of the run that is named by a prefix; of the newest for no name.  Raises ToolFailure."""
        try:
            with Store(self.store) as store:
                return store.find_run(name or None)
        except (LookupError, StoreError, sqlite3.Error, OSError) as error:
            raise ToolFailure(marked(str(error.args[0] if error.args else error)[:_MOST_OF_ERROR])) from None

    def need_stored(self, run: str, stage: str) -> None:
        """Raises ToolFailure for a stage that a compiler would have to make, if no code may be run."""
        if self.allow_run:
            return
        with Store(self.store) as store:
            report = store.report(run)
        stored = any(stage in (one.id, one.name) for each in report.with_predictions for one in each.stages)
        if not stored and made_on_demand(report, stage):
            self.need_permission()

    async def read(self, *words: str) -> str:
        """What a command that reads the store prints.  Raises ToolFailure."""
        return await self._output([words[0], f"--store={self.store}", *words[1:]], READ_SECONDS, (0,))

    async def read_json(self, *words: str) -> Any:
        """The same as data.  Raises ToolFailure."""
        return _loaded(await self.read(*words, "--json"))

    async def execute(
        self,
        words: Sequence[str],
        args: Sequence[str],
        seconds: float,
        *,
        stores: bool = True,
        codes: Sequence[int] = (0,),
    ) -> str:
        """What a command that runs a script prints.

        Parameters
        ----------
        words
            The command and its options.
        args
            Arguments of the script.
        stores
            Whether the command takes the store.
        codes
            Exit codes that are not a failure.

        Raises ToolFailure, also where no code may be run.
        """
        self.need_permission()
        if any("\0" in arg for arg in args):
            raise ToolFailure("An argument has a zero byte.")
        store = [f"--store={self.store}"] if stores else []
        command = [words[0], *store, f"--python={self.python}", *words[1:], "--", *args]
        return await self._output(command, seconds, codes)

    async def execute_json(self, words: Sequence[str], args: Sequence[str], seconds: float) -> Any:
        """The same as data, whatever the exit code says.  Raises ToolFailure."""
        return _loaded(await self.execute(words, args, seconds))

    async def _output(self, words: Sequence[str], seconds: float, codes: Sequence[int]) -> str:
        variables = {**os.environ, "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}
        variables.pop("COLUMNS", None)  # tables as wide as they are
        process = await asyncio.create_subprocess_exec(
            *PROGRAM, *words, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE, env=variables, start_new_session=True,
        )  # fmt: skip
        assert process.stdout is not None and process.stderr is not None
        try:
            out, error, _ = await asyncio.wait_for(
                asyncio.gather(_bounded(process.stdout), _bounded(process.stderr), process.wait()), seconds
            )
        except asyncio.TimeoutError:
            raise ToolFailure(f"irscope {words[0]} took longer than {seconds:g} s and was stopped.") from None
        finally:
            if process.returncode is None:  # too slow, or the client took its question back
                end_tree(process.pid)
                await process.wait()
        if process.returncode not in codes:
            said = error.decode("utf-8", "replace").strip() or out.decode("utf-8", "replace").strip()
            raise ToolFailure(
                f"irscope {words[0]} failed, exit code {process.returncode}.\n{marked(said[-_MOST_OF_ERROR:])}"
            )
        return out.decode("utf-8", "replace")


async def _bounded(stream: asyncio.StreamReader) -> bytes:
    kept = bytearray()
    while piece := await stream.read(1 << 16):
        kept += piece[: max(0, _MOST_BYTES - len(kept))]
    return bytes(kept)


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise ToolFailure(f"The answer is longer than {_MOST_BYTES // 1_000_000} MB. Ask for a part of it.") from None


def word(value: str, what: str) -> str:
    """A value that cannot be taken for an option.  Raises ToolFailure for what is not one."""
    if value.startswith("-") or "\0" in value or len(value) > _LONGEST_WORD:
        raise ToolFailure(
            f"Invalid {what}. It must not begin with a dash, nor be longer than {_LONGEST_WORD} characters."
        )
    return value


def words(value: str, what: str) -> list[str]:
    """The value as an argument; nothing if it is empty.  Raises ToolFailure."""
    return [word(value, what)] if value else []


def option(name: str, value: str) -> list[str]:
    """``--name=value``; nothing if it is empty.  Raises ToolFailure."""
    return [f"{name}={word(value, name.lstrip('-'))}"] if value else []
