"""Errors inside compiled code: found at the user's line, and checked without compile when that is asked for."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import pytest
from irscope.cli import running
from irscope.cli.main import main
from irscope.driver import checking
from irscope.driver.checking import check_without_compile
from irscope.driver.driver import RunSpec, execute
from irscope.protocol import Finding, Lane, OutcomeKind, RelatedRole, Severity
from irscope.store.store import Store
from support import Ran, lines_marked, run_forked, shared_worker, write

KIND = "compiled-code-error"
INDEX = """\
import torch

@torch.compile
def looked_up(table, index):
    scaled = table * 2
    rows = torch.nn.functional.embedding(index, scaled)  # @fails
    return rows.relu() + 1

looked_up(torch.ones(4, 3), torch.tensor([1, 7]))
"""
OPERATION = """\
import os, signal
import torch

@torch.library.custom_op("mine::op", mutates_args=())
def op(x: torch.Tensor) -> torch.Tensor:
    REAL

@op.register_fake
def _(x):
    return torch.empty_like(x)

@torch.compile
def fn(x):
    y = x + 1
    z = op(y)  # @fails
    return z * 2

fn(torch.ones(4, 3))
"""
STRIDES = OPERATION.replace("REAL", "return x.t().contiguous().t()")
KILLED = OPERATION.replace("REAL", "os.kill(os.getpid(), signal.SIGSEGV)")
KILLED_IF_COMPILED = OPERATION.replace(
    "REAL", "os.kill(os.getpid(), signal.SIGSEGV if compiled() else 0)\n    return x.clone()"
).replace(
    "@torch.library", "import sys\ndef compiled():\n    frame = sys._getframe()\n    while frame:\n"
    "        if frame.f_code.co_filename.endswith('_inductor/output_code.py'):\n            return True\n"
    "        frame = frame.f_back\n    return False\n\n@torch.library", 1
)  # fmt: skip
OWN_BACKEND = """\
import torch
from torch._dynamo.backends.common import aot_autograd

def compiled(graph, inputs):
    def run(inputs):
        raise RuntimeError("my backend fails")
    run._boxed_call = True
    return run

@torch.compile(backend=aot_autograd(fw_compiler=compiled))
def fn(x):
    return x.sin() + 1

fn(torch.ones(3))  # @fails
"""
BACKWARD = """\
import torch

@torch.library.custom_op("mine::square", mutates_args=())
def square(x: torch.Tensor) -> torch.Tensor:
    return x * x

@torch.library.custom_op("mine::gradient", mutates_args=())
def gradient(x: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    raise ValueError("no gradient today")

square.register_fake(torch.empty_like)
gradient.register_fake(lambda x, g: torch.empty_like(x))
square.register_autograd(
    lambda ctx, g: gradient(ctx.saved_tensors[0], g),
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]),
)

@torch.compile
def fn(x):
    y = x + 1
    z = square(y)  # @fails
    return z.sum()

loss = fn(torch.ones(4, 3, requires_grad=True))
loss.backward()  # @called
"""


def checked(source: str, folder: Path, lane: str = "deep") -> tuple[Ran, Finding]:
    """A run, and its finding after the check."""
    script, store = write(folder, source), folder / "runs.db"
    ran = run_forked(script, store, lane)
    with Store(str(store)) as opened:
        assert check_without_compile(
            RunSpec(str(script), lane=Lane(lane)), opened, ran.report.run, worker=shared_worker()
        )
        (found,) = (one for one in opened.report(ran.report.run).findings if one.kind == KIND)
        assert [summary.run for summary in opened.runs()] == [ran.report.run], "the runs of the check are not kept"
    return ran, found


def the_one(ran: Ran, source: str) -> Finding:
    (found,) = ran.findings(KIND)
    assert found.severity is Severity.ERROR
    assert {found.range.start.line} == lines_marked(source, "fails")
    assert found.compiles == ("0/0",)
    return found


def test_an_index_out_of_range_in_a_fused_kernel(tmp_path: Path) -> None:
    ran, after = checked(INDEX, tmp_path)
    found = the_one(ran, INDEX)
    assert found.code == "RuntimeError"
    assert found.message == (
        "RuntimeError raised inside compiled code of `looked_up` (0/0), in `cpp_fused_add_embedding_mul_relu_0`: "
        "index out of bounds: 0 <= tmp2 < 4L."
    )
    assert "irscope run --check-without-compile" in found.hints[0]
    assert ran.report.outcome.message.endswith(f"script.py:{found.range.start.line})"), "not the generated file"
    assert after.message.startswith(
        f"{found.message}\nChecked: It fails without compile, too: the fault is in the script"
    )
    assert "IndexError: index out of range in self" in after.message


def test_the_fast_lane_names_the_node(tmp_path: Path) -> None:
    ran, after = checked(INDEX, tmp_path, "fast")
    found = the_one(ran, INDEX)
    assert found.code == "IndexError"
    assert "in `torch.nn.functional.embedding`: index out of range" in found.message
    start, end = found.range.start.column, found.range.end.column
    line = INDEX.split("\n")[found.range.start.line - 1]
    assert line[start:end] == "torch.nn.functional.embedding(index, scaled)"
    assert "It fails without compile, too" in after.message


def test_a_graph_that_trains(tmp_path: Path) -> None:
    """An operation that is not known is said to fail at the call, not at the ``def`` that Dynamo's frame names."""
    source = INDEX.replace("@torch.compile\n", '@torch.compile(backend="aot_eager")\n')
    source = source.replace("torch.ones(4, 3)", "torch.ones(4, 3, requires_grad=True)").replace("  # @fails", "")
    ran = run_forked(write(tmp_path, source), tmp_path / "runs.db", "deep")
    (found,) = ran.findings(KIND)
    assert source.split("\n")[found.range.start.line - 1].startswith("looked_up(")
    assert "inside compiled code of `looked_up` (0/0): index out of range in self." in found.message
    assert found.related == ()


def test_only_inductors_code_fails(tmp_path: Path) -> None:
    ran, after = checked(STRIDES, tmp_path)
    found = the_one(ran, STRIDES)
    assert "in `torch.ops.mine.op.default`: expected size" in found.message
    assert "Without compile the script works: only compiled code fails." in after.message
    assert "so Inductor's code fails" in after.message
    assert "torch.library.opcheck" in after.hints[0]


@pytest.mark.parametrize("lane", ["fast", "deep"])
def test_a_backend_of_the_script_s_own_fails(lane: str, tmp_path: Path) -> None:
    _, after = checked(OWN_BACKEND, tmp_path, lane)
    assert "Without compile the script works: only compiled code fails." in after.message
    assert "so the script's own backend fails" in after.message
    assert "Dynamo" not in after.message and "Inductor" not in after.message


def test_what_to_do_until_it_is_fixed_works(tmp_path: Path) -> None:
    around = STRIDES.replace(
        "@torch.compile\n", "@torch.compiler.disable\ndef around(y):\n    return op(y)\n\n@torch.compile\n"
    )
    ran = run_forked(write(tmp_path, around.replace("z = op(y)", "z = around(y)")), tmp_path / "runs.db", "deep")
    assert ran.report.outcome.kind is OutcomeKind.COMPLETED
    assert not ran.findings(KIND)


def test_a_signal_in_compiled_code(tmp_path: Path) -> None:
    ran, after = checked(KILLED, tmp_path)
    found = the_one(ran, KILLED)
    assert found.code == "SIGSEGV"
    assert found.message == ("Killed by SIGSEGV inside compiled code of `fn` (0/0), in `torch.ops.mine.op.default`.")
    assert ran.report.outcome.kind is OutcomeKind.CRASHED
    assert "It fails without compile, too: the fault is in the script (by the same signal)." in after.message


def test_a_signal_in_compiled_code_alone(tmp_path: Path) -> None:
    ran, after = checked(KILLED_IF_COMPILED, tmp_path)
    the_one(ran, KILLED_IF_COMPILED)
    assert "Without compile the script works" in after.message
    assert "so Inductor's code fails" in after.message


def test_an_error_in_a_compiled_backward(tmp_path: Path) -> None:
    ran, after = checked(BACKWARD, tmp_path)
    found = the_one(ran, BACKWARD)
    assert "ValueError raised inside compiled code of `fn` (0/0), in `torch.ops.mine.gradient.default`" in found.message
    assert {one.range.start.line for one in found.related if one.role is RelatedRole.CALLER} == lines_marked(
        BACKWARD, "called"
    )
    assert found.related[0].message == "raised here, in `gradient`"
    assert "It fails without compile, too" in after.message


def test_it_fails_in_another_way(tmp_path: Path) -> None:
    source = (
        STRIDES.replace("fn(torch", "if not torch._dynamo.config.disable:\n    fn(torch") + "raise KeyError('later')\n"
    )
    _, after = checked(source, tmp_path)
    assert "Without compile the script fails in another way: KeyError: 'later'" in after.message


SCRIPTS_OWN = "ValueError", "IndexError", "TorchRuntimeError"
"""Exceptions of scripts that compiled something: these are checked, too. The outcome, or the compile error, says what
came of it."""


@pytest.mark.parametrize(
    "source",
    [
        "raise ValueError('mine')",
        "fn(torch.ones(3))\nraise ValueError('after')",
        "def thrown(x):\n    y = x + 1\n    raise ValueError('traced')\ntorch.compile(thrown)(torch.ones(3))",
        "def asked(x):\n    y = x + 1\n    torch._dynamo.graph_break()\n    return [1][int(y.sum())]\ntorch.compile(asked)(torch.ones(3))",
        "def multiplied(x):\n    return x @ torch.ones(5, 5)\ntorch.compile(multiplied)(torch.ones(3, 3))",
        "torch.fx.symbolic_trace(lambda x, y: x @ y)(torch.ones(2, 3), torch.ones(2, 3))",
        "try:\n    torch.compile(lambda t, i: t[i])(torch.ones(3), torch.tensor([7]))\nexcept Exception:\n    pass",
        "import os, signal\nfn(torch.ones(3))\nos.kill(os.getpid(), signal.SIGSEGV)",
    ],
    ids=["plain", "after", "traced", "resumed", "while compiling", "fx", "caught", "signal"],
)
@pytest.mark.parametrize("lane", ["fast", pytest.param("deep", marks=pytest.mark.nightly)])
def test_what_is_not_raised_in_compiled_code(source: str, lane: str, tmp_path: Path) -> None:
    script = write(tmp_path, f"import torch\n\n@torch.compile\ndef fn(x):\n    return x + 1\n\n{source}\n")
    ran = run_forked(script, tmp_path / "runs.db", lane)
    assert not ran.findings(KIND)
    fails = ran.report.outcome.message.startswith(SCRIPTS_OWN) and bool(ran.report.compiles)
    with Store(ran.store) as store:
        assert check_without_compile(RunSpec(str(script)), store, ran.report.run, worker=shared_worker()) is fails
        report = store.report(ran.report.run)
    assert not [finding for finding in report.findings if finding.kind == KIND]
    assert ((report.outcome, report.findings) != (ran.report.outcome, ran.report.findings)) is fails


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """The script's output is its own; that of the second run is dropped, and its side effects tell how often it ran.

    The command runs in this process, and what it runs in forks: fresh ones would import torch three times.
    """
    for module, each in ((running, execute), (checking, check_without_compile)):
        monkeypatch.setattr(module, each.__name__, functools.partial(each, worker=shared_worker()))
    effects = "open('ran', 'a').write('-' if torch._dynamo.config.disable else 'x')\nprint('begun')\n"
    source = INDEX.replace("import torch\n", f"import torch\n{effects}", 1)
    script = write(tmp_path, source)
    shared = ["run", script, "--lane", "fast", "--cwd", tmp_path, "--store", tmp_path / "runs.db", "--json"]
    assert main([*map(str, shared)]) == 0
    once = capfd.readouterr()
    assert (tmp_path / "ran").read_text() == "x", "nothing runs twice unless it is asked for"
    assert "Checked" not in json.loads(once.out)["findings"][0]["message"]
    assert main([*map(str, shared), "--check-without-compile", "--exit-code"]) == 1
    assert (tmp_path / "ran").read_text() == "xx-", "once more, and once without compile"
    ran = capfd.readouterr()
    assert ran.err.count("begun") == 1
    (found,) = json.loads(ran.out)["findings"]
    assert "Checked: It fails without compile, too" in found["message"]


NO_ROUND = """\
import numpy as np
import torch

@torch.compile
def pad(x, seconds):
    return torch.nn.functional.pad(x, (0, int(round(np.floor(seconds * 1.5)))))

pad(torch.ones(3), 2.7)
"""
BOTH_FAIL = """\
import torch

@torch.compile
def f(x):
    return x @ torch.ones(4, 4)

f(torch.ones(3, 3))
"""
CAUSED_BY_COMPILING = """\
import torch

@torch.compile
def f(x):
    return x * 2, torch.compiler.is_compiling()

y, other = f(torch.ones(3))
if other:
    raise ValueError("another way than without compile")
"""


@pytest.mark.parametrize(
    ("source", "verdict"),
    [
        (NO_ROUND, "Without compile the script works: only the compiler fails. It fails with backend='eager' already"),
        (BOTH_FAIL, "It fails without compile, too: compiling is not the cause"),
    ],
    ids=["the compiler alone", "both"],
)
def test_a_compile_error_is_checked(source: str, verdict: str, tmp_path: Path) -> None:
    script, store = write(tmp_path, source), tmp_path / "runs.db"
    ran = run_forked(script, store, "fast")
    (before,) = ran.findings("compile-error")
    assert any("--check-without-compile" in hint for hint in before.hints)
    assert not any("may result in an error when running in eager" in hint for hint in before.hints)
    with Store(str(store)) as opened:
        spec = RunSpec(str(script), lane=Lane.FAST)
        assert check_without_compile(spec, opened, ran.report.run, worker=shared_worker())
        (found,) = opened.report(ran.report.run).findings
    assert found.message.startswith(f"{before.message}\nChecked: {verdict}")
    assert not any("--check-without-compile" in hint for hint in found.hints)


def test_an_error_that_only_compiling_causes(tmp_path: Path) -> None:
    script, store = write(tmp_path, CAUSED_BY_COMPILING), tmp_path / "runs.db"
    ran = run_forked(script, store, "fast")
    assert ran.report.findings == () and ran.report.outcome.kind is OutcomeKind.SCRIPT_ERROR
    with Store(str(store)) as opened:
        assert check_without_compile(
            RunSpec(str(script), lane=Lane.FAST), opened, ran.report.run, worker=shared_worker()
        )
        (found,) = opened.report(ran.report.run).findings
    assert (found.kind, found.code, found.range.start.line) == (KIND, "ValueError", 9)
    assert "Without compile the script works" in found.message and "backend='eager'" in found.message


def test_an_error_of_the_script_alone(tmp_path: Path) -> None:
    source = CAUSED_BY_COMPILING.replace("if other:", "if True:")
    script, store = write(tmp_path, source), tmp_path / "runs.db"
    ran = run_forked(script, store, "fast")
    with Store(str(store)) as opened:
        assert check_without_compile(
            RunSpec(str(script), lane=Lane.FAST), opened, ran.report.run, worker=shared_worker()
        )
        report = opened.report(ran.report.run)
    assert report.findings == ()
    assert report.outcome.message.endswith("It fails without compile, too: the fault is in the script.")
