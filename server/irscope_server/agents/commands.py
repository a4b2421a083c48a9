"""Commands of irscope, each in its own process: a stored run from elsewhere can neither block nor end the server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sqlite3
import sys
from collections.abc import Sequence
from typing import Any

from irscope.lowering import made_on_demand
from irscope.store.store import Store, StoreError

from irscope_server.agents.answers import ToolFailure, marked
from irscope_server.agents.processes import ROOTS, started

_START = f"import sys; sys.path[:1] = {ROOTS!r}; sys.argv[0] = 'irscope'; "
PROGRAM = (sys.executable, "-c", f"{_START}from irscope.cli import main; sys.exit(main())")
"""The command irscope, out of the folders that this process has it from."""
ADAPTER = (sys.executable, "-c", f"{_START}from irscope_server.dap.__main__ import main; main([])")

READ_SECONDS = 60.0
_MOST_BYTES = 16_000_000
"""The most bytes of an output; what comes after is read and dropped."""
_MOST_OF_ERROR = 1000
_LONGEST_WORD = 4000
_NOT_ALLOWED = (
    "This would run code, which is not allowed here. Ask the user to start the server with `irscope mcp --allow-run` "
    "(in VS Code: the setting irscope.agents.allowRun). Stored runs can be read without it: call `run` without a script."
)


class Commands:
    """Starts commands on one store.

    Args:
        python: The interpreter that runs scripts.
        allow_run: Whether code may be run.
        traces: Folders below which traces may be opened also where no code may be run, beside the working folder.
    """

    def __init__(self, store: str, python: str, allow_run: bool, traces: Sequence[str] = ()) -> None:
        self.store, self.python, self.allow_run = os.path.abspath(os.path.expanduser(store)), python, allow_run
        self._readable = [os.path.realpath(os.path.expanduser(folder)) for folder in (os.getcwd(), *traces)]

    def need_permission(self) -> None:
        """Raises ToolFailure if no code may be run."""
        if not self.allow_run:
            raise ToolFailure(_NOT_ALLOWED)

    def trace_file(self, path: str) -> str:
        """The path of a trace that the client may have opened.  Raises ToolFailure.

        A client that may run code can read any file by that; one that may not must not learn what is elsewhere.
        """
        real = os.path.realpath(os.path.expanduser(word(path, "trace")))
        if not self.allow_run and not any(
            real == one or real.startswith(one.rstrip(os.sep) + os.sep) for one in self._readable
        ):
            raise ToolFailure(
                "This trace is outside of the folders that may be read: the working folder, and those that the user names "
                "with `irscope mcp --traces DIR`. With --allow-run any trace can be opened."
            )
        if not os.path.exists(real):
            raise ToolFailure(
                "There is no such file or folder. trace: a folder of TORCH_TRACE, a log of it, or an archive."
            )
        return real

    def run_id(self, name: str) -> str:
        """The ID of the run that is named by a prefix; of the newest for no name.  Raises ToolFailure."""
        try:
            with Store(self.store) as store:
                return store.find_run(name or None)
        except (LookupError, StoreError, sqlite3.Error, OSError) as error:
            said = marked(str(error.args[0] if error.args else error)[:_MOST_OF_ERROR])
            raise ToolFailure(f"{said}\nrun() lists the stored runs.") from None

    def run_of(self, program: str) -> str:
        """The ID of the run of a script that says most of its compiles; empty if there is none."""
        try:
            with Store(self.store) as store:
                return store.best_run(program) or ""
        except (LookupError, StoreError, sqlite3.Error, OSError):
            return ""

    def need_stored(self, run: str, stage: str) -> None:
        """Raises ToolFailure for a stage that a compiler would have to make, if no code may be run."""
        if self.allow_run:
            return
        with Store(self.store) as store:
            report = store.report(run)
        stored = any(stage in (one.id, one.name) for each in report.with_predictions for one in each.stages)
        if not stored and made_on_demand(report, stage):
            self.need_permission()

    async def read(self, *words: str, seconds: float = READ_SECONDS, stores: bool = True) -> str:
        """What a command that executes nothing prints.  Raises ToolFailure.

        Args:
            stores: Whether the command takes the store.
        """
        store = [f"--store={self.store}"] if stores else []
        return (await self._output([words[0], *store, *words[1:]], seconds, (0,)))[0]

    async def read_json(self, *words: str, seconds: float = READ_SECONDS) -> Any:
        """The same as data.  Raises ToolFailure."""
        return _loaded(await self.read(*words, "--json", seconds=seconds))

    async def execute(
        self,
        words: Sequence[str],
        args: Sequence[str] | None,
        seconds: float,
        *,
        stores: bool = True,
        codes: Sequence[int] = (0,),
        python: bool = True,
    ) -> str:
        """What a command that runs code prints.

        Args:
            words: The command and its options.
            args: Arguments of the script; None if the command takes none.
            stores: Whether the command takes the store.
            codes: Exit codes that are not a failure.
            python: Whether it takes the interpreter that runs scripts.

        Raises ToolFailure, also where no code may be run.
        """
        return (await self._executed(words, args, seconds, stores, codes, python))[0]

    async def execute_coded(
        self, words: Sequence[str], args: Sequence[str], seconds: float, codes: Sequence[int]
    ) -> tuple[str, int]:
        """The same, with the exit code, which is one of `codes`.  Raises ToolFailure."""
        out, _, code = await self._executed(words, args, seconds, True, codes, True)
        return out, code

    async def execute_json(self, words: Sequence[str], args: Sequence[str], seconds: float) -> tuple[Any, str]:
        """The same as data, whatever the exit code says, and what the script printed.  Raises ToolFailure."""
        out, printed, _ = await self._executed(words, args, seconds, True, (0,), True)
        return _loaded(out), printed

    async def _executed(
        self, words: Sequence[str], args: Sequence[str] | None, seconds: float, stores: bool, codes: Sequence[int], python: bool
    ) -> tuple[str, str, int]:  # fmt: skip
        self.need_permission()
        if any("\0" in arg for arg in args or ()):
            raise ToolFailure("An argument has a zero byte.")
        store = [f"--store={self.store}"] if stores else []
        interpreter = [f"--python={self.python}"] if python else []
        command = [words[0], *store, *interpreter, *words[1:], *(["--", *args] if args is not None else [])]
        return await self._output(command, seconds, codes)

    async def _output(self, words: Sequence[str], seconds: float, codes: Sequence[int]) -> tuple[str, str, int]:
        """Standard output, standard error, where a command with ``--json`` has what the script prints, and the exit code."""
        variables = {**os.environ, "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}
        variables.pop("COLUMNS", None)  # tables as wide as they are
        async with started(
            [*PROGRAM, *words], variables, asyncio.subprocess.DEVNULL, asyncio.subprocess.PIPE
        ) as process:
            try:
                out, error = await asyncio.wait_for(_printed(process), seconds)
            except asyncio.TimeoutError:
                raise ToolFailure(f"irscope {words[0]} took longer than {seconds:g} s and was stopped.") from None
        code = process.returncode
        if code is None or code not in codes:
            said = (
                _outcome_in(out) or error.decode("utf-8", "replace").strip() or out.decode("utf-8", "replace").strip()
            )
            raise ToolFailure(f"irscope {words[0]} failed, exit code {code}.\n{marked(said[-_MOST_OF_ERROR:])}")
        return out.decode("utf-8", "replace"), error.decode("utf-8", "replace"), code


async def _printed(process: asyncio.subprocess.Process) -> tuple[bytes, bytes]:
    """Standard output and standard error of a process that has ended."""
    assert process.stdout is not None and process.stderr is not None
    out, error, _ = await asyncio.gather(_bounded(process.stdout), _bounded(process.stderr), process.wait())
    return out, error


async def _bounded(stream: asyncio.StreamReader) -> bytes:
    kept = bytearray()
    while piece := await stream.read(1 << 16):
        kept += piece[: max(0, _MOST_BYTES - len(kept))]
    return bytes(kept)


def _outcome_in(out: bytes) -> str:
    """How the run ended, where a command that failed has printed its report as JSON."""
    with contextlib.suppress(ValueError, KeyError, TypeError):
        return str(json.loads(out)["outcome"]["message"])
    return ""


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise ToolFailure(f"The answer is longer than {_MOST_BYTES // 1_000_000} MB. Ask for a part of it.") from None


def word(value: str, what: str) -> str:
    """A value that cannot be taken for an option.  Raises ToolFailure if it is not one."""
    if value.startswith("-") or "\0" in value or len(value) > _LONGEST_WORD:
        raise ToolFailure(
            f"Invalid {what}. It must not begin with a dash, nor be longer than {_LONGEST_WORD} characters."
        )
    return value


def words(value: str, what: str) -> list[str]:
    """The value as an argument; empty if there is no value.  Raises ToolFailure."""
    return [word(value, what)] if value else []


def option(name: str, value: str) -> list[str]:
    """``--name=value``; empty if there is no value.  Raises ToolFailure."""
    return [f"{name}={word(value, name.lstrip('-'))}"] if value else []
