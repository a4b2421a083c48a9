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

    def of_list(program: Any, arguments: Any, env: Any) -> Any:
        """For `_posixsubprocess.fork_exec`: candidates of the program's path, and ``KEY=VALUE`` as bytes."""
        programs = [os.fsdecode(each) for each in program]
        there = next((each for each in programs if os.path.isfile(each)), programs[0])
        if not runs_python(there, [os.fsdecode(each) for each in arguments]):
            return env
        pairs = None if env is None else [os.fsdecode(each).partition("=") for each in env]
        before = dict(os.environ) if pairs is None else {name: value for name, _, value in pairs}
        return [os.fsencode(f"{name}={value}") for name, value in variables(address, before).items()]

    def of_mapping(program: Any, arguments: Any, env: Any) -> Any:
        if not runs_python(os.fsdecode(program), [os.fsdecode(each) for each in arguments]):
            return env
        return variables(address, {os.fsdecode(name): os.fsdecode(value) for name, value in env.items()})

    _wrap(subprocess, "_fork_exec", lambda args: (*args[:5], of_list(args[1], args[0], args[5]), *args[6:]))
    _wrap(
        sys.modules.get("_posixsubprocess"),
        "fork_exec",
        lambda args: (*args[:5], of_list(args[1], args[0], args[5]), *args[6:]),
    )
    for name in ("execve", "posix_spawn", "posix_spawnp"):
        _wrap(os, name, lambda args: (*args[:2], of_mapping(*args[:3]), *args[3:]))
    if not hasattr(os, "execv"):
        return
    execv, execve = os.execv, os.execve

    @functools.wraps(execv)
    def execv_with(path: Any, args: Any) -> Any:
        try:
            env = of_mapping(path, args, os.environ)
        except Exception:  # noqa: BLE001  it has the words for what is wrong
            env = os.environ
        return execv(path, args) if env is os.environ else execve.__wrapped__(path, args, env)  # type: ignore[attr-defined]

    os.execv = execv_with  # type: ignore[assignment]


def _wrap(module: Any, name: str, change: Callable[[tuple[Any, ...]], tuple[Any, ...]]) -> None:
    """Replaces a function by one that changes its positional arguments, where there is such a function."""
    function = getattr(module, name, None)
    if function is None:
        return

    @functools.wraps(function)
    def changed(*args: Any, **kwargs: Any) -> Any:
        try:
            args = change(args)
        except Exception:  # noqa: BLE001  arguments of another form: the function says what is wrong with them
            return function(*args, **kwargs)
        return function(*args, **kwargs)

    setattr(module, name, changed)
