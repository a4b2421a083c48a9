"""Each touch of a private PyTorch name: loud when it goes silent, and visible, without harm, where it does not fit."""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import irscope.internals
import pytest
from irscope.internals import dynamo_frames, failed_programs, unread
from irscope.internals.frames import FrameLook
from irscope.internals.hooks import Hook, Hooks, replace_attribute
from irscope.protocol import CaptureGap, Lane, Progress, RunRequest, ValuesRequest
from irscope.runner.messages import MessagePipe
from irscope.runner.session import Session
from irscope.worker.client import Worker, WorkerState, can_fork, wait_for
from support import REPOSITORY, Ran, run_captured, run_plain_forked, write

SCRIPT = """\
import torch

@torch.compile
def f(x):
    y = x.sin() * 2
    print("in the middle")
    return y.cos() + 1

print(f(torch.ones(4)).shape)
print(f(torch.ones(6)).shape)
"""
OUTPUT = "in the middle\ntorch.Size([4])\nin the middle\ntorch.Size([6])\n"

# Wherever the interpreter starts with this on its path, hooks number IRSCOPE_TEST_HOOKS (a list) do not fit.
MISFIT = """\
import importlib.abc, json, os, sys

class Misfit(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != "irscope.internals.hooks":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module
        def exec_module(module):
            execute(module)
            import dataclasses
            original = module.Hooks.__init__
            def renamed(_):
                raise AttributeError("renamed")
            def init(self, hooks, on_gap):
                chosen = json.loads(os.environ["IRSCOPE_TEST_HOOKS"])
                original(self, [dataclasses.replace(h, apply=renamed) if i in chosen else h for i, h in enumerate(hooks)], on_gap)
            module.Hooks.__init__ = init
        spec.loader.exec_module = exec_module
        return spec

import importlib.util
sys.meta_path.insert(0, Misfit())
"""


def hooks_of(lane: Lane) -> list[Hook]:
    pipe = MessagePipe(os.open(os.devnull, os.O_WRONLY))
    session = Session(RunRequest("r", "/s.py", (), lane, "/nowhere"), pipe)
    pipe.close()
    return session._hooks._hooks


RunWithMisfits = Callable[..., Ran]


@pytest.fixture(scope="module")
def misfits(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    """A worker in whose forks hooks do not fit."""
    folder = tmp_path_factory.mktemp("misfits")
    write(folder, MISFIT, "sitecustomize.py")
    worker = Worker(sys.executable, {"PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])})
    assert not can_fork() or wait_for(worker, 120) is WorkerState.READY, worker.reason
    yield worker
    worker.stop()


@pytest.fixture
def run_with_misfits(misfits: Worker, tmp_path: Path) -> RunWithMisfits:
    def run(lane: Lane, chosen: list[int], source: str = SCRIPT, **options: Any) -> Ran:
        env = {**misfits.env, "IRSCOPE_TEST_HOOKS": str(chosen)}
        script, store = write(tmp_path, source), tmp_path / "runs.db"
        return run_captured(script, store, lane.value, env=env, worker=misfits, **options)

    return run


@pytest.mark.parametrize(
    "lane", [pytest.param(Lane.FAST, marks=pytest.mark.nightly), Lane.DEEP], ids=lambda lane: lane.value
)
def test_no_hook_fits_and_the_run_goes_on(lane: Lane, run_with_misfits: RunWithMisfits) -> None:
    """PyTorch's trace alone gives the findings, the compiles and most stages; what is missing is said."""
    hooks = hooks_of(lane)
    ran = run_with_misfits(lane, list(range(len(hooks))))
    assert ran.stdout == OUTPUT
    assert ran.report.outcome.exit_code == 0
    assert [
        (finding.kind, finding.code)
        for finding in ran.report.findings
        if finding.kind in ("graph-break", "recompilation")
    ] == [
        ("graph-break", "GB0059"),
        ("recompilation", "recompile-size"),
        ("recompilation", "recompile-size"),
    ]
    assert "0/0/dynamo-graph" in {stage.id for stage in ran.compile("0/0").stages}
    imported = {gap.what for gap in ran.report.capture_gaps}
    assert imported >= {
        hook.what for hook in hooks if hook.module in ("torch._dynamo.eval_frame", "torch._dynamo.convert_frame")
    }
    for gap in ran.report.capture_gaps:
        assert re.search(
            r"is not as expected \(AttributeError\('renamed'\)\); checked on torch 2\.|cache answered|came from a cache",
            gap.why,
        )


def test_one_hook_does_not_fit_and_the_others_work(run_with_misfits: RunWithMisfits) -> None:
    hooks = hooks_of(Lane.DEEP)
    provenance = next(i for i, hook in enumerate(hooks) if hook.what == "which user lines a kernel came from")
    ran = run_with_misfits(Lane.DEEP, [provenance])
    assert [gap.what for gap in ran.report.capture_gaps] == ["which user lines a kernel came from"]
    assert ran.stdout == OUTPUT
    assert "0/0/modified-bytecode" in {stage.id for stage in ran.compile("0/0").stages}


def test_hooks_of_values_do_not_fit(run_with_misfits: RunWithMisfits) -> None:
    source = "import torch\nprint(torch.compile(lambda x: x + 1)(torch.ones(2)))\n"
    ran = run_with_misfits(Lane.DEEP, list(range(200)), source, values=ValuesRequest())
    assert ran.stdout == "tensor([2., 2.])\n"
    assert {"values of nodes", "values of compiled code"} <= {gap.what for gap in ran.report.capture_gaps}


@pytest.fixture(scope="module")
def deep_twice(tmp_path_factory: pytest.TempPathFactory, shared_worker: Worker | None) -> tuple[Ran, Ran]:
    folder = tmp_path_factory.mktemp("twice")
    script = write(folder, SCRIPT)
    first, second = (run_captured(script, folder / "runs.db", "deep", worker=shared_worker) for _ in range(2))
    return first, second


def test_no_gaps_on_this_torch(deep_twice: tuple[Ran, Ran], tmp_path: Path, shared_worker: Worker | None) -> None:
    fast = run_captured(write(tmp_path, SCRIPT), tmp_path / "runs.db", "fast", worker=shared_worker)
    for ran in (*deep_twice, fast):
        assert ran.report.capture_gaps == ()
        assert ran.stdout == OUTPUT


def test_the_kernels_of_each_graph_are_counted(deep_twice: tuple[Ran, Ran]) -> None:
    """Where Inductor waits for its other processes; with one compile thread see test_progress.py."""
    for ran in deep_twice:
        phases = [message.phase for message in ran.messages if isinstance(message, Progress)]
        assert sum(phase.endswith(": compiling kernel 1 of 1") for phase in phases) == 4


def test_a_warm_cache_hides_no_stage(deep_twice: tuple[Ran, Ran]) -> None:
    """The FX graph cache and the AOTAutograd cache are full at the second run."""
    first, second = ([stage.id for compile in ran.report.compiles for stage in compile.stages] for ran in deep_twice)
    assert first == second
    assert sum("/kernel/" in id for id in second) == 4
    assert [kernel.origins for kernel in deep_twice[0].report.kernels] == [
        kernel.origins for kernel in deep_twice[1].report.kernels
    ]
    assert all(kernel.origins for kernel in deep_twice[1].report.kernels)


def test_the_fast_lane_never_reaches_inductor(tmp_path: Path, shared_worker: Worker | None) -> None:
    ran = run_captured(write(tmp_path, SCRIPT), tmp_path / "runs.db", "fast", worker=shared_worker)
    assert ran.report.kernels == ()
    assert {stage.name for compile in ran.report.compiles for stage in compile.stages} == {
        "bytecode", "dynamo-graph", "guards", "symbols", "modified-bytecode",
    }  # fmt: skip


# After pytorch#133898: AOTAutograd compiles for each value of a number that it cannot make a tensor, Dynamo alone does not.
A_NUMBER = """\
import torch

@torch.compile
def blend(average, x, decay):
    return torch._foreach_mul([average, x], decay)[0] + torch.lerp(average, x, 1 - decay)

for step in range(10):
    blend(torch.zeros(4), torch.ones(4), 0.9 + step * 0.005)
"""
LANES = [
    pytest.param(SCRIPT, "inductor", 4, id="inductor", marks=pytest.mark.nightly),
    pytest.param(SCRIPT, "aot_eager", 4, id="aot_eager", marks=pytest.mark.nightly),
    pytest.param(SCRIPT, "eager", 4, id="eager"),
    *(pytest.param(A_NUMBER, *each, id=f"a number, {each[0]}") for each in (("inductor", 8), ("eager", 2))),
]


@pytest.mark.parametrize(("script_text", "backend", "compiles"), LANES)
def test_both_lanes_find_the_same(
    script_text: str, backend: str, compiles: int, tmp_path: Path, shared_worker: Worker | None
) -> None:
    source = script_text.replace("@torch.compile", f"@torch.compile(backend={backend!r})")
    script, store = write(tmp_path, source), tmp_path / "runs.db"
    deep, fast = (run_captured(script, store, lane, worker=shared_worker) for lane in ("deep", "fast"))
    found = [
        [
            (f.kind, f.code, f.range, f.count, f.compiles)
            for f in ran.report.findings
            if f.kind in ("graph-break", "recompilation", "recompile-limit", "specialization")
        ]
        for ran in (deep, fast)
    ]
    assert found[0] == found[1] != []
    assert [len(ran.report.compiles) for ran in (deep, fast)] == [compiles, compiles]


def test_a_back_end_of_the_user_s_own_runs_as_it_is(tmp_path: Path, shared_worker: Worker | None) -> None:
    source = SCRIPT.replace(
        "@torch.compile",
        "def mine(graph, inputs):\n    print('mine')\n    return graph\n\n@torch.compile(backend=mine)",
    )
    ran = run_captured(write(tmp_path, source), tmp_path / "runs.db", "fast", worker=shared_worker)
    assert ran.stdout.count("mine\n") == 4


@pytest.mark.skipif(sys.version_info < (3, 11), reason="instructions have no columns")
def test_the_exact_columns(tmp_path: Path, shared_worker: Worker | None) -> None:
    """They come from Dynamo's translators, by private names: two breaks on one line, in a function that is inlined."""
    source = """\
import torch

def helper(x):
    return x.sum().item() + (x * 2).max().item()

@torch.compile
def f(x):
    return helper(x) + 1

f(torch.ones(3))
"""
    ran = run_captured(write(tmp_path, source), tmp_path / "runs.db", "fast", worker=shared_worker)
    line = source.split("\n")[3]
    places = {
        line[f.range.start.column : f.range.end.column] for f in ran.findings("graph-break") if f.range.start.line == 4
    }
    assert places == {"x.sum().item()", "(x * 2).max().item()"}


TRANSLATORS = """\
import logging, sys
sys.path.insert(0, COMPILER)
import torch
from irscope.internals import frames
from irscope.events.stack import _translators
from irscope.findings.moment import look
from irscope.events.trace import Record, TraceHandler
from irscope.internals.dynamo_frames import code_being_compiled

met = set()
read = frames.FrameLook.read

def noted(look, frame):
    value = read(look, frame)
    if value is not None:
        met.add(f"{look.function} {look.local}")
    return value

frames.FrameLook.read = noted

def receive(record):
    if record.event == "dynamo_graph_break_reason":
        moment = look(record, None)
        print(type(moment.error).__name__, moment.fullgraph)
        for place, line in _translators(moment.error):
            where = place.range
            print(place.function, line, where.start.line, where.start.column, where.end.line, where.end.column)
    elif record.event == "dynamo_start":
        print(code_being_compiled().co_name)

logging.getLogger(TraceHandler.LOGGER).addHandler(TraceHandler(receive))

def helper(x):
    return (x * 2).max().item()

@torch.compile(backend="eager")
def f(x):
    return 1 + helper(x)

f(torch.ones(3))
print(*sorted(met), sep=", ", file=sys.stderr)
"""


@pytest.mark.skipif(sys.version_info < (3, 11), reason="instructions have no columns")
def test_the_private_names_that_tell_where_dynamo_is(tmp_path: Path) -> None:
    """Without them the columns come from elsewhere and the code objects from the trace, and no other test would tell:
    local variables of torch's functions, and attributes of its translators."""
    source = TRANSLATORS.replace("COMPILER", repr(str(REPOSITORY / "compiler")))
    done = run_plain_forked(write(tmp_path, source))
    helper, call = (
        source.split("\n").index(line) + 1 for line in ("    return (x * 2).max().item()", "    return 1 + helper(x)")
    )
    assert done.stdout.splitlines()[:4] == [
        "f",
        "Unsupported False",
        f"f {call} {call} 15 {call} 24",
        f"helper {helper} {helper} 11 {helper} 31",
    ], done.stderr
    assert "_compile code, _compile one_graph, log_graph_break exc, step self" in done.stderr


def test_looks_that_may_find_nothing_are_seen_to_find_something() -> None:
    """A look at a function that must be running leaves a gap when it goes silent; of the others a test has to say that
    they find what they look for."""
    here = {dynamo_frames.BREAK_ERROR, dynamo_frames.FULLGRAPH, dynamo_frames.TRANSLATOR}  # the test above
    # test_frugal.py: what nobody reads is not made; test_reproducers.py
    elsewhere = {unread.EVENT, unread.FACTS, unread.PAYLOAD, failed_programs.WRITTEN}
    found: set[FrameLook] = set()
    for module in pkgutil.iter_modules(irscope.internals.__path__, "irscope.internals."):
        values = vars(importlib.import_module(module.name)).values()
        found |= {value for value in values if isinstance(value, FrameLook) and not value.required}
    assert found == here | elsewhere


def test_hooks_are_undone_in_reverse_and_gaps_are_told() -> None:
    import json as target

    gaps: list[CaptureGap] = []
    order: list[str] = []
    before = (target.dumps, target.loads)

    def named(name: str) -> Hook:
        def apply(module: object) -> object:
            undo = replace_attribute(module, name, lambda: name)

            def restore() -> None:
                order.append(name)
                undo()

            return restore

        return Hook(name, "json", "2.13", apply)  # type: ignore[arg-type]

    wrong = Hook("nothing", "json", "2.13", lambda module: replace_attribute(module, "no_such_name", None))
    sour = Hook("sour", "json", "2.13", lambda module: lambda: 1 / 0)  # type: ignore[arg-type,return-value]
    with Hooks([named("dumps"), wrong, sour, named("loads")], gaps.append):
        assert (target.dumps(), target.loads()) == ("dumps", "loads")  # type: ignore[call-arg]
    assert order == ["loads", "dumps"]
    assert (target.dumps, target.loads) == before
    assert [gap.what for gap in gaps] == ["nothing", "restoring PyTorch after the run"]
    assert "json is not as expected (AttributeError" in gaps[0].why
