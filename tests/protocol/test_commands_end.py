"""A script ends with the command that started it, also where that is killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from dap_client import ADAPTER, Client
from light_torch import ENDLESS, at_work, light_torch
from support import IRSCOPE, ends, write

_LAUNCHER = """\
import subprocess, sys

command = sys.argv[next(at for at, word in enumerate(sys.argv) if word.endswith(".py") and at) :]
subprocess.Popen([sys.executable, *command]).wait()
"""
"""As torchrun does it, with one rank."""
_TORCHRUN = ["--nproc-per-node", "1", "--nnodes", "1"]


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    write(tmp_path, ENDLESS, "endless.py")
    variables = {**os.environ, **light_torch(tmp_path / "light"), "IRSCOPE_STORE": str(tmp_path / "runs.db")}
    write(tmp_path, "", "light/torch/distributed/__init__.py")
    write(tmp_path, _LAUNCHER, "light/torch/distributed/run.py")
    return variables


@pytest.mark.parametrize(
    "command",
    [
        ["run", *_TORCHRUN, "--lane", "fast"],
        *(
            pytest.param(words, marks=pytest.mark.nightly)  # all start a run as `irscope run` does
            for words in (["run"], ["check"], ["values"], ["fix"], ["profile"], ["run", "--world", "2"])
        ),
    ],
    ids=" ".join,
)
def test_a_script_ends_with_a_command_that_is_killed(command: list[str], env: dict[str, str], tmp_path: Path) -> None:
    null = subprocess.DEVNULL
    process = subprocess.Popen(
        [IRSCOPE, *command, "endless.py"], cwd=tmp_path, env=env, stdin=null, stdout=null, stderr=null
    )
    pids = at_work(tmp_path)
    process.kill()
    process.wait()
    assert all(ends(pid, 10) for pid in pids)


def test_a_script_ends_with_a_debug_adapter_that_is_killed(env: dict[str, str], tmp_path: Path) -> None:
    with Client([*ADAPTER], env=env) as client:
        client.initialize()
        client.ask(
            "launch", program=str(tmp_path / "endless.py"), store=env["IRSCOPE_STORE"], python=sys.executable,
            cwd=str(tmp_path), env={"PYTHONPATH": env["PYTHONPATH"]},
        )  # fmt: skip
        client.ask("configurationDone")
        pids = at_work(tmp_path)
        client.process.kill()
        client.process.wait()
        assert all(ends(pid, 10) for pid in pids)
