"""`irscope diverge` compares what Dynamo made of a program with the program without compile."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import lines_marked, run_cli_forked, write

# After pytorch#193279, with the mark.
STRAIGHT_THROUGH = """\
import torch

class RoundST(torch.autograd.Function):
    @staticmethod
    def forward(w):
        return w.round()

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, g):
        return g

def loss(w):  # @program
    return (RoundST.apply(w) * 2.0).sum()

torch.manual_seed(0)
w = torch.randn(4)
g = torch.func.grad(loss)
print("eager", g(w).tolist())
print("compiled", torch.compile(g)(w).tolist())
"""
LOST_APPEND = """\
import torch

def made():
    log = []
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(w):
            return w.square()
        @staticmethod
        def setup_context(ctx, inputs, output):
            log.append("called")
        @staticmethod
        def backward(ctx, g):
            return g
    def program(w):  # @program
        return Square.apply(w).sum()
    return program

torch.compile(made())(torch.ones(3))
"""
RIGHT = """\
import torch

log = []

@torch.compile
def program(x):
    x.add_(1)
    log.append(len(log))
    return torch.nn.functional.dropout(x, 0.5) * 2

program(torch.ones(3))
"""


@pytest.mark.parametrize(
    ("source", "words"),
    [
        pytest.param(STRAIGHT_THROUGH, "4 of 4 elements differ; the first was 2, now 0", id="backward"),
        pytest.param(LOST_APPEND, "log[0] is missing now", marks=pytest.mark.nightly, id="append"),
    ],
)
def test_what_dynamo_made_wrong_is_named(tmp_path: Path, source: str, words: str) -> None:
    script, store = write(tmp_path, source), tmp_path / "runs.db"
    done = run_cli_forked("diverge", script, "--store", store)
    assert done.returncode == 1, done.stderr
    head, told = [line for line in done.stdout.split("\n") if "ynamo" in line][:2]
    assert head.startswith("Dynamo  divergence (")
    assert told.endswith(f"{words}.")
    [line] = lines_marked(source, "# @program")
    assert f"script.py:{line}: Dynamo changed what the program computes" in told
    findings = json.loads(run_cli_forked("show", "--store", store, "--json").stdout)["findings"]
    assert [(one["code"], one["range"]["start"]["line"]) for one in findings if one["kind"] == "divergence"] == [
        ("divergence-dynamo", line)
    ]


@pytest.mark.nightly  # a test of the docs has one that is right, too
def test_side_effects_and_random_numbers_that_are_right_do_not_differ(tmp_path: Path) -> None:
    done = run_cli_forked("diverge", write(tmp_path, RIGHT), "--store", tmp_path / "runs.db", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert (answer["dynamo"]["difference"], answer["dynamo"]["why_not"]) == ("", "")
    assert [data["found"] for data in answer["compared"]] == [None]


def test_that_the_comparison_was_not_made_is_told(tmp_path: Path) -> None:
    done = run_cli_forked("diverge", write(tmp_path, "import torch\n"), "--store", tmp_path / "runs.db")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Dynamo  not compared with the script without compile: ")
