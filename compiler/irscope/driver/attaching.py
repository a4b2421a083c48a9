"""What the processes of a job do now, without stopping them: for a job that does not go on.

A rank that ``irscope run`` has started answers by itself (`irscope.runner.answering`).  py-spy reads the stack of any other
process, which needs the right to read its memory.  NCCL's RAS thread knows the state of its communicators.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from irscope.comparing.ranks.hanging import RankState, Waiting
from irscope.internals.stacks import Frame, collective_of, line_of, phase_of
from irscope.runner.answering import address_of, user_at
from irscope.store.store import Store
from irscope.system.commands import run_bounded
from irscope.system.processes import is_running, tree
from irscope.vocabulary.units import duration
from irscope.vocabulary.visible import bounded

MOST_PROCESSES = 256
_ANSWER_SECONDS = 3.0
_PY_SPY_SECONDS = 10.0
_LONGEST_ANSWER = 32 << 20
_RAS = ("127.0.0.1", 28028)
_RAS_SECONDS = 5.0
_LONGEST_RAS = 1 << 20
_PTRACE_SCOPE = "/proc/sys/kernel/yama/ptrace_scope"
_LAUNCHED = (b"RANK", b"WORLD_SIZE", b"LOCAL_RANK", b"LOCAL_WORLD_SIZE")
_HELPERS = ("compile_worker", "multiprocessing.resource_tracker", "multiprocessing.forkserver")
"""In command lines of processes that are not the script's."""

NO_PY_SPY = (
    "py-spy is not installed: `{python} -m pip install py-spy`. Without it only ranks that `irscope run` has started "
    "answer."
)


def processes_of(pid: int) -> list[int]:
    """A process and the Python processes below it.  Raises LookupError with a message for the user."""
    if not os.path.isdir("/proc/self"):
        raise LookupError("irscope attach needs Linux's /proc.")
    if not is_running(pid):
        raise LookupError(f"No process has the number {pid}.")
    found = [each for each in tree(pid) if _is_python(each)]
    if not found:
        raise LookupError(f"Process {pid} is not Python, and has started no Python process.")
    return found[:MOST_PROCESSES]


def processes_in(store: Store) -> list[int]:
    """The ranks of the newest job of a run store that still run.  Raises LookupError with a message for the user."""
    found: list[int] = []
    for summary in store.runs(limit=4 * MOST_PROCESSES):
        if summary.outcome is not None or summary.rank is None:
            if found:
                break
            continue
        process = store.how_run(summary.run)[0].get("process")
        pid = process.get("pid") if isinstance(process, dict) else None
        if isinstance(pid, int) and is_running(pid):
            found.append(pid)
    if not found:
        raise LookupError(f"No rank of a job in {store.path} is running now. Give the number of a process instead.")
    return found


def states_of(pids: Sequence[int]) -> list[RankState]:
    """What each rank does: those that answer by themselves, and the others as py-spy sees them, in the order of ranks.

    If a rank has several processes, the first counts, which started the others.
    """
    answers = {pid: answer for pid in pids if (answer := _answer_of(pid)) is not None}
    found = [_answered(pid, answer) for pid, answer in answers.items()]
    ranks = {pid: _rank_of(pid) for pid in pids}
    silent: dict[int, list[int]] = {}
    for pid in pids:
        rank = ranks[pid][0]
        if rank is not None and rank not in {state.rank for state in found}:
            silent.setdefault(rank, []).append(pid)
    # Below `irscope run` the first process of a rank is the one that watches over it.
    asked = [of_rank[min(len(of_rank) - 1, 1 if answers else 0)] for of_rank in silent.values()]
    found += [_seen(pid, *ranks[pid]) for pid in (asked if asked or answers else _scripts(pids))]
    return sorted(found, key=lambda state: (state.rank is None, state.rank or 0, state.pid))


def _scripts(pids: Sequence[int]) -> list[int]:
    return [pid for pid in pids if not any(name in _command_of(pid) for name in _HELPERS)]


# --- ranks that answer ------------------------------------------------------------------------------------------------


def _answer_of(pid: int) -> dict[str, Any] | None:
    """What a rank says of itself; None if it does not answer."""
    with contextlib.suppress(OSError, ValueError, RecursionError), socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_ANSWER_SECONDS)
        connection.connect(address_of(pid))
        if user_at(connection)[0] != pid:  # another program has taken the name
            return None
        data = bytearray()
        while (part := connection.recv(1 << 16)) and len(data) < _LONGEST_ANSWER:
            data += part
        answer = json.loads(data)
        return answer if isinstance(answer, dict) else None
    return None


def _answered(pid: int, answer: Mapping[str, Any]) -> RankState:
    """What a rank said; its script may say anything in its place."""
    try:
        return _read(pid, answer)
    except (AttributeError, LookupError, OverflowError, TypeError, ValueError):
        return RankState(pid, unknown="Its answer is not one of irscope's.")


def _read(pid: int, answer: Mapping[str, Any]) -> RankState:
    """Raises LookupError, TypeError, ValueError and others where a part is missing or wrong."""
    threads = {str(name): [_frame(each) for each in stack] for name, stack in dict(answer.get("threads") or {}).items()}
    compile, phase = answer.get("compile"), _phase(threads)
    words = ""
    if phase:
        words = phase if not isinstance(compile, dict) else _compiling(compile, phase)
    return _state(
        pid, int(answer["rank"]), int(answer.get("world") or 0), tuple(map(int, answer.get("machine") or ())), threads, words,
        groups={str(name): [*map(int, ranks)] for name, ranks in dict(answer.get("groups") or {}).items()},
        reached={str(name): int(number) for name, number in dict(answer.get("reached") or {}).items()},
        waiting=tuple(map(_waiting, answer.get("waiting") or ())), run=str(answer.get("run") or ""),
    )  # fmt: skip


def _waiting(row: Sequence[Any]) -> Waiting:
    group, number, operation, sizes, since, file, line = row
    return Waiting(str(group), int(number), str(operation), str(sizes), int(since), str(file), int(line))


def _frame(each: Sequence[Any]) -> Frame:
    file, line, function = each
    return str(file), int(line), str(function)


def _compiling(compile: Mapping[str, Any], phase: str) -> str:
    told = compile.get("phase")
    place = f"{os.path.basename(str(compile.get('file')))}:{compile.get('line')}, {compile.get('id')}"
    lasts = f"for {duration(float(compile.get('seconds') or 0))}"
    now = f"{told}, for {duration(float(compile.get('phase_seconds') or 0))}: {phase}" if told else phase
    return f"{compile.get('title')} ({place}) {lasts}; {now}"


def _phase(threads: Mapping[str, Sequence[Frame]]) -> str:
    """The phase of the first thread that compiles: the backward of a CUDA program is compiled in a thread of autograd's."""
    return next(filter(None, map(phase_of, threads.values())), "")


def _state(
    pid: int, rank: int | None, world: int, machine: tuple[int, ...], threads: Mapping[str, Sequence[Frame]],
    compiling: str, **known: Any,
) -> RankState:  # fmt: skip
    main = next(iter(threads.values()), ())
    file, line = line_of(main)
    function = next((name for path, at, name in main if (path, at) == (file, line)), "")
    return RankState(pid, rank, world, machine, file, line, function, collective_of(main), compiling, **known)


# --- other processes --------------------------------------------------------------------------------------------------


def _seen(pid: int, rank: int | None, world: int, machine: range) -> RankState:
    found = _dumped(pid)
    if isinstance(found, str):
        return RankState(pid, rank, world, tuple(machine), unknown=found)
    return _state(pid, rank, world, tuple(machine), found, _phase(found))


def _dumped(pid: int) -> dict[str, list[Frame]] | str:
    """The stacks of a process by py-spy, the main thread first; or why not."""
    beside = os.path.join(os.path.dirname(sys.executable), "py-spy")
    program = beside if os.path.exists(beside) else shutil.which("py-spy")
    if program is None:
        return NO_PY_SPY.format(python=sys.executable)
    try:
        done = run_bounded(
            [program, "dump", "--nonblocking", "--full-filenames", "--json", "-p", str(pid)], _PY_SPY_SECONDS
        )
    except subprocess.TimeoutExpired:
        return f"py-spy took longer than {_PY_SPY_SECONDS:.0f} s."
    except OSError as error:
        return f"{program} cannot be run: {error.strerror}."
    if done.returncode != 0:
        return _no_stack(pid, done.stderr)
    try:
        dumped = json.loads(done.stdout)
        stacks = {
            str(thread.get("thread_name") or thread["thread_id"]): [
                (str(frame["filename"]), int(frame["line"]), str(frame["name"])) for frame in thread["frames"]
            ]
            for thread in sorted(dumped, key=lambda thread: thread.get("os_thread_id") != pid)
        }
    except (ValueError, LookupError, TypeError, AttributeError):
        return f"Unexpected output from {program}."
    return stacks


def _no_stack(pid: int, said: str) -> str:
    """Why py-spy has read nothing: mostly the right to read another process's memory is missing."""
    if not any(words in said for words in ("ermission", "not permitted", "EPERM")):
        return f"py-spy cannot read process {pid}: {bounded(said.strip().rpartition(chr(10))[2], 200)}"
    scope = ""
    with contextlib.suppress(OSError), open(_PTRACE_SCOPE, encoding="ascii") as file:
        scope = f" (kernel.yama.ptrace_scope is {file.read().strip()})"
    return (
        f"irscope may not read the memory of process {pid}: the capability CAP_SYS_PTRACE is missing{scope}. Run it as "
        "root, or start the container with --cap-add SYS_PTRACE; or start the job with `irscope run`, whose ranks answer "
        "without it."
    )


def _is_python(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return os.path.basename(os.readlink(f"/proc/{pid}/exe")).startswith(("python", "pypy"))
    return "python" in _command_of(pid)


def _command_of(pid: int) -> str:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read().replace(b"\0", b" ").decode("utf-8", "replace")
    return ""


def _rank_of(pid: int) -> tuple[int | None, int, range]:
    """The rank of a process, the size of its job and the ranks of its machine, by its variables at its start."""
    with contextlib.suppress(OSError, ValueError, LookupError), open(f"/proc/{pid}/environ", "rb") as file:
        variables = dict(each.split(b"=", 1) for each in file.read().split(b"\0") if b"=" in each)
        rank, world, local, locals_ = (int(variables[name]) for name in _LAUNCHED)
        return rank, world, range(rank - local, rank - local + locals_)
    return None, 0, range(0)


# --- NCCL -------------------------------------------------------------------------------------------------------------


def ras_report(address: tuple[str, int] = _RAS) -> str:
    """What NCCL's RAS thread on this machine says of its communicators (NCCL 2.24 and newer); empty if none answers.

    The protocol is lines of text: ``ncclras`` speaks it, too.
    """
    until, data = time.monotonic() + _RAS_SECONDS, b""
    with contextlib.suppress(OSError), socket.create_connection(address, timeout=1.0) as connection:
        connection.settimeout(_RAS_SECONDS)
        connection.sendall(b"CLIENT PROTOCOL 2\n")
        if not connection.recv(1 << 12).startswith(b"SERVER PROTOCOL"):
            return ""
        connection.sendall(b"TIMEOUT 3\nVERBOSE STATUS\n")
        while time.monotonic() < until and len(data) < _LONGEST_RAS and (part := connection.recv(1 << 16)):
            data += part
    return data.decode("utf-8", "replace").removeprefix("OK\n").strip()
