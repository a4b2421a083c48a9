"""`irscope run --model FILE:EXPR --inputs FILE:EXPR`: a model without a script."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support import run_cli, run_cli_forked, write

pytestmark = pytest.mark.worker

NET = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width

    def forward(self, x, scale=1.0):
        print("called with", tuple(x.shape), scale)
        return torch.relu(x) * scale


if __name__ == "__main__":
    raise SystemExit("the script part runs")
"""
PRINT = 11
"""1-based line; a graph break."""


def ran(folder: Path, model: str, inputs: str, *more: str) -> tuple[dict[str, Any], str]:
    done = run_cli_forked(
        "run", "--model", model, "--inputs", inputs, "--json", "--store", folder / "runs.db", *more, cwd=folder
    )
    assert done.stdout, done.stderr
    return json.loads(done.stdout), done.stderr


@pytest.mark.parametrize(
    ("inputs", "shown"),
    [
        ("net.py:torch.ones(2, 3)", "(2, 3) 1.0"),
        ("net.py:(torch.ones(2, 3), 2.0)", "(2, 3) 2.0"),
        ("net.py:{'x': torch.ones(4), 'scale': 3.0}", "(4,) 3.0"),
        ("data.py:batch", "(7,) 1.0"),
    ],
)
def test_the_model_is_compiled_and_called(tmp_path: Path, inputs: str, shown: str) -> None:
    net = write(tmp_path, NET, "net.py")
    write(tmp_path, "import torch\nbatch = torch.ones(7)\n", "data.py")
    told, printed = ran(tmp_path, "net.py:Net(3)", inputs, "--lane", "fast")
    assert told["outcome"]["kind"] == "completed", told["outcome"]
    assert f"called with {shown}" in printed
    assert (told["script"], told["compiles"][0]["file"]) == (str(net), str(net))
    [finding] = told["findings"]
    assert (finding["kind"], finding["file"], finding["range"]["start"]["line"]) == ("graph-break", str(net), PRINT)


def test_what_the_expression_raises_is_the_outcome(tmp_path: Path) -> None:
    write(tmp_path, NET, "net.py")
    told, _ = ran(tmp_path, "net.py:Nett(3)", "net.py:torch.ones(2)", "--lane", "fast")
    assert told["outcome"]["kind"] == "script-error"
    assert "NameError: name 'Nett' is not defined" in told["outcome"]["message"]
    told, _ = ran(tmp_path, "net.py:Net(", "net.py:torch.ones(2)", "--lane", "fast")
    assert "SyntaxError" in told["outcome"]["message"]
    assert "<--model>" in told["outcome"]["message"]


def test_a_model_that_is_no_module_is_refused(tmp_path: Path) -> None:
    write(tmp_path, NET, "net.py")
    told, _ = ran(tmp_path, "net.py:Net", "net.py:torch.ones(2)", "--lane", "fast")
    assert "TypeError: --model Net is a class. Write Net(…), which makes a module." in told["outcome"]["message"]
    told, _ = ran(tmp_path, "net.py:'Net'", "net.py:torch.ones(2)", "--lane", "fast")
    assert "--model 'Net' is an object of str, not a module or a function." in told["outcome"]["message"]
    assert told["compiles"] == []


@pytest.mark.parametrize(
    ("model", "inputs", "message"),
    [
        ("nets.py:Net(3)", "net.py:1", "--model nets.py:Net(3): file not found: nets.py."),
        ("net.py:", "net.py:1", "--model net.py:: the expression is missing."),
        ("net.py", "net.py:1", "--model net.py: the expression is missing."),
        ("net.py:Net(3)", "1", "--inputs 1: file not found: 1."),
    ],
)
def test_what_is_not_a_file_and_an_expression_is_refused(tmp_path: Path, model: str, inputs: str, message: str) -> None:
    write(tmp_path, NET, "net.py")
    done = run_cli("run", "--model", model, "--inputs", inputs, "--store", tmp_path / "runs.db", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == f"irscope: {message} Write FILE:EXPR, as in net.py:Net().\n"


def test_one_needs_the_other(tmp_path: Path) -> None:
    write(tmp_path, NET, "net.py")
    done = run_cli("run", "--model", "net.py:Net(3)", "--store", tmp_path / "runs.db", cwd=tmp_path)
    assert done.returncode == 2
    assert "--model FILE:EXPR and --inputs FILE:EXPR belong together" in done.stderr
