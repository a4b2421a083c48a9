"""Programs that the script starts: those that run Python get what lets `irscope.driver.in_children` capture in them.

Only the environment of the new program is changed, and only if it is Python, so the script's own variables stay as they are.
"""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

VARIABLE = "IRSCOPE_PROCESS"
_FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "driver", "in_children")
_PYTHON = re.compile(r"(python|pypy)[\d.]*(\.exe)?$")
_STARTERS = frozenset(
    ("sh", "bash", "dash", "zsh", "env", "nohup", "nice", "numactl", "taskset", "timeout", "stdbuf", "setsid")
)
_MENTIONS = re.compile(r"python|\.py\b|torchrun")
_NOT_FOLLOWED = re.compile(r"torch[/\\]_inductor[/\\]compile_worker|torch\._inductor\.compile_worker")
"""Inductor's own processes: what they compile is a part of this process's compiles."""


def runs_python(program: str, arguments: Sequence[str]) -> bool:
    """Whether a program is a Python interpreter, a script for one, or a shell whose arguments mention one."""
    text = " ".join(arguments)
    if _NOT_FOLLOWED.search(text):
        return False
    name = os.path.basename(program)
    if _PYTHON.match(name) or name == os.path.basename(sys.executable):
        return True
    if name in _STARTERS:
        return _MENTIONS.search(text) is not None
    try:
        with open(program, "rb") as file:
            head = file.read(200).partition(b"\n")[0]
    except OSError:
        return False
    return head.startswith(b"#!") and b"python" in head


def variables(address: str, before: Mapping[str, str]) -> dict[str, str]:
    """An environment with what a child interpreter needs to join the run."""
    path = before.get("PYTHONPATH", "")
    return {**before, "PYTHONPATH": os.pathsep.join([_FOLDER, *([path] if path else [])]), VARIABLE: address}


def follow_programs(address: str) -> None:
    """From now on Python programs that this process starts capture, too, and connect to an address."""

    def forked(args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Arguments of ``_posixsubprocess.fork_exec``: the environment is a list of ``KEY=VALUE``, or None."""
        there = next(filter(os.path.isfile, map(os.fsdecode, args[1])), "")
        if not runs_python(there, list(map(os.fsdecode, args[0]))):
            return args
        pairs = [] if args[5] is None else [os.fsdecode(each).partition("=") for each in args[5]]
        before = os.environ if args[5] is None else {name: value for name, _, value in pairs}
        env = [os.fsencode(f"{name}={value}") for name, value in variables(address, before).items()]
        return (*args[:5], env, *args[6:])

    def executed(args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Arguments of ``os.execve``: a program, its arguments, and a mapping."""
        if not runs_python(os.fsdecode(args[0]), list(map(os.fsdecode, args[1]))):
            return args
        before = {os.fsdecode(name): os.fsdecode(value) for name, value in args[2].items()}
        return (*args[:2], variables(address, before), *args[3:])

    for module, name, change in (
        (subprocess, "_fork_exec", forked),
        (sys.modules.get("_posixsubprocess"), "fork_exec", forked),
        (os, "execve", executed),
        (os, "posix_spawn", executed),
        (os, "posix_spawnp", executed),
    ):
        _wrap(module, name, change)
    _wrap(os, "execv", lambda args: executed((*args, os.environ)), os.execve)


def _wrap(
    module: Any,
    name: str,
    change: Callable[[tuple[Any, ...]], tuple[Any, ...]],
    instead: Callable[..., Any] | None = None,
) -> None:
    """Replaces a function by one that changes its positional arguments, where there is such a function.

    Args:
        instead: What is called with the changed arguments; None: the function itself.
    """
    function = getattr(module, name, None)
    if function is None:
        return

    @functools.wraps(function)
    def changed(*args: Any, **kwargs: Any) -> Any:
        try:
            other = change(args)
        except Exception:  # noqa: BLE001  arguments of another form: the function says what is wrong with them
            return function(*args, **kwargs)
        return (instead or function)(*other, **kwargs)

    setattr(module, name, changed)
