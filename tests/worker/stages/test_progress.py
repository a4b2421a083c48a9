"""What a run says of its progress: each phase of each frame, and which kernel of how many is compiled."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from irscope.capture.progress import DYNAMO_PHASES, ProgressTeller
from irscope.pipeline_captures.inductor.trace import PHASES
from irscope.protocol import Compile, CompileOutcome, KernelsWritten, Progress
from support import run_forked, write

SCRIPT = """\
import irscope.capture.progress
import torch
import torch._inductor.config

irscope.capture.progress._PAUSE = 0  # kernels of the cache come at once
torch._inductor.config.compile_threads = 1


@torch.compile
def f(x):
    return (x.sin() @ x).cos()

f(torch.ones(4, 4))
"""


def test_one_compile_thread(tmp_path: Path) -> None:
    """Each kernel is compiled where the output code names it."""
    ran = run_forked(write(tmp_path, SCRIPT), tmp_path / "runs.db", "deep")
    progress = [message for message in ran.messages if isinstance(message, Progress)]
    assert [one.phase for one in progress] == [
        "tracing frame 1",
        "compiling frame 1",
        "inference graph: generating code",
        "inference graph: compiling kernels",
        "inference graph: compiling kernel 1 of 2",
        "inference graph: compiling kernel 2 of 2",
    ]
    assert [(one.done, one.total) for one in progress[-2:]] == [(0, 2), (1, 2)]
    assert progress[-2].text == "inference graph: compiling kernel 1 of 2: f (script.py:9, 0/0); left: 1 kernel"
    assert progress[-1].text == "inference graph: compiling kernel 2 of 2: f (script.py:9, 0/0)"
    assert ran.report.capture_gaps == ()
    first = next(message for message in ran.messages if isinstance(message, KernelsWritten))
    assert ran.messages.index(first) < ran.messages.index(progress[-2]), (
        "the kernels are there before they are compiled"
    )
    assert all(kernel.origins[0].line == 11 for kernel in first.kernels) and len(first.kernels) == 3


@pytest.fixture
def compile() -> Compile:
    return Compile("3/1", "f", "/x/model.py", 7, CompileOutcome.RUNNING, 0, 0, 0.0)


def test_frames_are_counted_as_they_come_and_say_when_they_come_again(compile: Compile) -> None:
    told: list[Progress] = []
    teller = ProgressTeller(told.append, DYNAMO_PHASES)
    teller.phase("dynamo_start", compile)
    teller.phase("dynamo_guards", compile)
    teller.phase("dynamo_start", dataclasses.replace(compile, function="wrapper.wrapped", program="Llama"))
    again = "tracing frame 1 again (1)"
    names = [": f (model.py:7, 3/1)", ": Llama (model.py:7, 3/1)"]
    assert [one.text for one in told] == [again + name for name in names], "by the name of what the user passed"


def test_forward_and_backward_are_told_apart(compile: Compile) -> None:
    told: list[Progress] = []
    teller = ProgressTeller(told.append, PHASES)
    teller.phase("aot_joint_graph", compile)
    for backward in (False, True):
        teller.phase("inductor_post_grad_graph", compile, backward)
        teller.phase("inductor_output_code", compile, backward)
        teller.kernels(compile, 0, 3)
    assert [one.text.replace(": f (model.py:7, 3/1)", "") for one in told] == [
        "partitioning frame 1",
        "forward 1 of 2: generating code; left: the backward",
        "forward 1 of 2: compiling kernels; left: the backward",
        "forward 1 of 2: compiling kernel 1 of 3; left: 2 kernels, the backward",
        "backward 2 of 2: generating code",
        "backward 2 of 2: compiling kernels",
        "backward 2 of 2: compiling kernel 1 of 3; left: 2 kernels",
    ]


def test_a_warm_cache_floods_nothing(compile: Compile) -> None:
    told: list[Progress] = []
    teller = ProgressTeller(told.append, DYNAMO_PHASES)
    for done in range(501):
        teller.kernels(compile, done, 500)
    assert told[0].phase == "compiling kernel 1 of 500"
    assert len(told) < 50
