"""Processes that tools start.  Nothing of one is left when it is ended, and when this server has ended, however that did.

On Linux each is below a warden (`irscope.system.warden`), which holds one end of a pipe whose other end this process has.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import shutil
import sys
from collections.abc import AsyncIterator, Mapping, Sequence

import irscope
from irscope.system.ending import end_tree

import irscope_server

ROOTS = [os.path.dirname(package.__path__[0]) for package in (irscope, irscope_server)]
"""Folders that this process has the packages from.  `-m` would look in the working folder first, where anybody's file may
lie."""
_PATIENCE_SECONDS = 10.0
"""For a warden that was asked to end: it waits until all below it are gone."""
_BELOW_WARDEN = f"""\
import os, sys
sys.path[:1] = {ROOTS!r}
from irscope.system.warden import part
part(int(sys.argv[1]))
os.close(int(sys.argv[1]))
os.execv(sys.argv[2], sys.argv[2:])"""
_HAS_WARDENS = sys.platform.startswith("linux")


@functools.cache
def _lifeline() -> tuple[int, int]:
    """A pipe into which nobody writes: a warden that has its second end sees when this process, and with it the first, is
    gone."""
    return os.pipe()


@contextlib.asynccontextmanager
async def started(
    command: Sequence[str], environment: Mapping[str, str], stdin: int, stderr: int
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process whose standard output is read; at the end of the block it is ended with everything that it has started.

    Args:
        environment: All its variables.

    Raises OSError if it cannot be started.
    """
    program = shutil.which(command[0])
    if program is None:
        raise FileNotFoundError(f"Program not found: {command[0]}.")
    words: list[str] = [program, *command[1:]]
    fds: tuple[int, ...] = ()
    if _HAS_WARDENS:
        descriptor = _lifeline()[1]
        fds = (descriptor,)
        words = [sys.executable, "-c", _BELOW_WARDEN, str(descriptor), *words]
    process = await asyncio.create_subprocess_exec(
        *words, stdin=stdin, stdout=asyncio.subprocess.PIPE, stderr=stderr, env=environment, pass_fds=fds,
        start_new_session=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        await _end(process)


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None and _HAS_WARDENS:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(process.wait(), _PATIENCE_SECONDS)
    if process.returncode is None:
        end_tree(process.pid)
        await process.wait()
