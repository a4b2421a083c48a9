"""Which ranks are run, and the first difference of two ranks' graphs, compiles and findings."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from facts import a_compile, a_finding, an_outcome
from irscope.cli.arguments import read
from irscope.cli.torchrun import command_of
from irscope.comparing.ranks.differences import RankRun, What, differences, first_difference
from irscope.comparing.ranks.normalized import normalized
from irscope.comparing.ranks.traffic import UNSEEN, bytes_of, collectives_of, unseen_collectives
from irscope.comparing.ranks.waiting import NO_DURATIONS, unknown_waits, waits_of
from irscope.driver.driver import RunSpec
from irscope.driver.jobs import job_of, others_of
from irscope.driver.merging import RankDone, merged_findings
from irscope.driver.rank_places import at_user_lines
from irscope.driver.ranks import rank_spec, ranks_of
from irscope.findings.kinds import rank_divergence
from irscope.internals.stacks import place_in
from irscope.internals.whereabouts import Whereabouts
from irscope.protocol import SCHEMA, Compile, CompileOutcome, Finding, Lane, OutcomeKind, Report, StageRef
from irscope.store.store import Store

GRAPH = """\
class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[8][1]cuda:0"):
        l_x_ = L_x_

        # File: {file}:3 in f, code: y = x + {number}
        y: "f32[8][1]cuda:0" = l_x_ + {number};  l_x_ = None

        # File: /lib/site-packages/torch/funcol.py:9 in all_reduce, code: all_reduce(
        tensor: "f32[8][1]cuda:0" = torch.ops._c10d_functional.{operation}(y, 'sum', '{group}');  y = None
        return (tensor,)
"""


@pytest.fixture
def graph(tmp_path: Path) -> str:
    """The text of a graph, to be filled in, with a user's file that exists."""
    file = tmp_path / "train.py"
    file.write_text("import torch\n\ny = x + 1\n", encoding="utf-8")
    return GRAPH.replace("{file}", str(file))


def filled(graph: str, number: int = 0, operation: str = "all_reduce", group: str = "3", device: str = "cuda:0") -> str:
    text = graph.replace("{number}", str(number)).replace("{operation}", operation).replace("{group}", group)
    return text.replace("cuda:0", device)


def run_of(
    rank: int,
    text: str,
    compiles: tuple[Compile, ...] = (),
    findings: tuple[Finding, ...] = (),
    ended: OutcomeKind = OutcomeKind.COMPLETED,
) -> RankRun:
    stage = StageRef("0/0/dynamo-graph", "dynamo-graph", "python", len(text))
    own = (a_compile(stages=(stage,), outcome=CompileOutcome.COMPILED),)
    report = Report(
        SCHEMA, f"run-{rank}", "/train.py", "2.13.0", an_outcome(kind=ended), compiles or own, findings, (), ()
    )
    return RankRun(rank, report, lambda id: text)


def test_groups_and_devices_are_no_difference(graph: str) -> None:
    assert differences(run_of(0, filled(graph)), run_of(1, filled(graph, group="17", device="cuda:5"))) == []


OF_THE_DEVICE = [
    "torch.arange(8, device = device(type='cuda', index={}))",
    "torch.ops.aten.arange.start_step(0, 8, 1, device = device(type='cuda', index={}), pin_memory = False)",
    "torch.ops.prims.device_put.default(l_x_, device(type='cuda', index={}))",
    "l_x_.to(device(type='cuda', index={}))",
    "l_x_.to({})",
    "l_x_.cuda({})",
    "torch.ones(3, device = {})",
    "torch.full((8,), 2, device = 'cuda:{}')",
    "torch.cuda.current_stream({})",
    "torch.cuda.streams.Stream({}, priority = 0)",
    "torch.cuda._exchange_device({})",
    "torch.cuda.synchronize(device = {})",
]
"""Statements as PyTorch prints them, with the index of the rank's device."""


def on_device(graph: str, statement: str, index: int, number: int) -> str:
    above = f"        z = {statement.format(index)}\n\n        # File"
    return filled(graph, number, device=f"cuda:{index}").replace("        # File", above, 1)


@pytest.mark.parametrize("statement", OF_THE_DEVICE)
def test_the_device_of_a_rank_is_no_divergence_and_a_constant_beside_it_is(graph: str, statement: str) -> None:
    first, other = (run_of(rank, on_device(graph, statement, rank, 7)) for rank in (0, 3))
    assert differences(first, other) == []
    first, other = (run_of(rank, on_device(graph, statement, rank, rank)) for rank in (0, 3))
    (found,) = differences(first, other)
    assert (found.what, found.first, found.other) == (What.CONSTANT, "0", "3")
    assert found.origin is not None and found.origin.line == 3


@pytest.mark.parametrize("call", ["torch.cuda.manual_seed({})", "torch.select(l_x_, 0, index = {})", "l_x_.add({})"])
def test_a_number_that_is_not_a_device_is_a_divergence(graph: str, call: str) -> None:
    first, other = (run_of(rank, on_device(graph, call, rank, 7)) for rank in (0, 3))
    assert [one.what for one in differences(first, other)] == [What.CONSTANT]


def test_a_rank_that_became_a_constant(graph: str) -> None:
    (found,) = differences(run_of(0, filled(graph, 592)), run_of(37, filled(graph, 608)))
    assert (found.what, found.first, found.other, found.ranks) == (What.CONSTANT, "592", "608", (0, 37))
    assert found.origin is not None and found.origin.line == 3
    finding = rank_divergence.finding_of(found, has_one_rank=True)
    assert finding.message == "The rank is compiled into the graph: rank 0 has 592 here, rank 37 has 608."
    assert finding.range.start.line == 3
    assert "compile_on_one_rank" not in "".join(finding.hints), "that is about numbers from the mesh, not from Python"


def test_a_number_from_the_mesh_has_the_option_if_torch_has_it(graph: str) -> None:
    (found,) = differences(run_of(0, filled(graph, 592)), run_of(37, filled(graph, 608)))
    below = found.__class__(found.what, found.ranks, found.compile, found.first, found.other, found.origin)
    assert rank_divergence.ONE_RANK in rank_divergence.finding_of(below, has_one_rank=True).hints[0]
    assert rank_divergence.ONE_RANK not in "".join(rank_divergence.finding_of(below, has_one_rank=False).hints)


SIZED = """\
class GraphModule(torch.nn.Module):
    def forward(self, s77: "Sym(s77)", L_x_: "f32[s77, 4][4, 1]cpu", L_self_modules_a_parameters_weight_: "f32[4][1]cpu"):
        l_x_ = L_x_
        l_self_modules_a_parameters_weight_ = L_self_modules_a_parameters_weight_

        # File: /train.py:3 in f, code: y = x.new_zeros(x.shape[0] * 3)
        mul: "Sym(3*s77)" = s77 * {number};  s77 = None
        y: "f32[8][1]cpu" = l_x_.{call}(mul + 1, l_self_modules_a_parameters_weight_);  l_x_ = None
        return (y,)
"""
SIZES = {"symbols": [{"symbol": "s77", "hint": "8", "source": "L['x'].size()[0]"}, {"symbol": 3}, None]}


def said_of_sizes(first: tuple[int, str], other: tuple[int, str]) -> tuple[str, str]:
    def ran(rank: int, number: int, call: str) -> RankRun:
        text = SIZED.replace("{number}", str(number)).replace("{call}", call).replace("3*s77", f"{number}*s77")
        names = ("dynamo-graph", "symbols")
        stages = tuple(StageRef(f"0/0/{name}", name, "python", len(text)) for name in names)
        run = run_of(rank, text, (a_compile(stages=stages, outcome=CompileOutcome.COMPILED),))
        return RankRun(rank, run.report, run.text, {"0/0/symbols": SIZES}.get)

    (found,) = differences(ran(0, *first), ran(1, *other))
    return found.first, found.other


def test_sizes_and_arguments_have_the_names_of_the_user() -> None:
    assert said_of_sizes((3, "new_zeros"), (2, "new_zeros")) == (
        "the size 3*x.shape[0] (x.shape[0] was 8)",
        "the size 2*x.shape[0] (x.shape[0] was 8)",
    )
    first, other = said_of_sizes((3, "new_zeros"), (3, "new_ones"))
    assert first == "x.new_zeros((3*x.shape[0]) + 1, self.a.weight) (x.shape[0] was 8)"
    assert other == first.replace("zeros", "ones")


def test_another_collective_counts_before_numbers(graph: str) -> None:
    other = filled(graph, 608, operation="reduce_scatter_tensor")
    found = first_difference(normalized(filled(graph, 592)), normalized(other))
    assert found is not None and found[0] is What.COLLECTIVE


def test_a_function_that_one_rank_alone_compiled() -> None:
    two = (a_compile(id="0/0", function="f"), a_compile(id="1/0", function="g"))
    (found,) = differences(run_of(0, "", two), run_of(1, "", two[:1]))
    assert (found.what, found.compile.function) == (What.MISSING, "g")
    assert (found.first, found.other) == ("1 compile", "0 compiles")
    failed = run_of(1, "", two[:1], ended=OutcomeKind.SCRIPT_ERROR)
    assert differences(run_of(0, "", two), failed) == [], "it only did not come so far"
    (turned,) = differences(run_of(0, "", two[::-1]), run_of(1, "", two))
    assert turned.what is What.ORDER


def test_a_function_is_named_once_however_often_it_differs(graph: str) -> None:
    def ran(rank: int, number: int) -> RankRun:
        text = filled(graph, number)
        stages = [(StageRef(f"{id}/dynamo-graph", "dynamo-graph", "python", len(text)),) for id in ("0/0", "0/1")]
        compiles = (a_compile(id="0/0", stages=stages[0]), a_compile(id="0/1", stages=stages[1]))
        return run_of(rank, text, compiles)

    assert [each.what for each in differences(ran(0, 592), ran(37, 608))] == [What.CONSTANT]


def test_findings_once_with_their_ranks(graph: str) -> None:
    both, one = a_finding(), a_finding(code="GB0007")
    merged = merged_findings([run_of(0, "", findings=(both,)), run_of(37, "", findings=(one, both))])
    assert [(finding.code, finding.ranks) for finding in merged] == [(both.code, (0, 37)), ("GB0007", (37,))]


def test_collectives_with_their_bytes(graph: str) -> None:
    (found,) = collectives_of(run_of(0, filled(graph)))
    assert (found.operation, found.reduction, found.group) == ("all_reduce", "sum", "3")
    assert (found.sent_bytes, found.received_bytes, found.line) == (32, 32, 3)


DTENSOR = """\
class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "DTensor(f32[8, 8][8, 1]cpu, P(sum))"):
        l_x_ = L_x_
        y: "DTensor(f32[8, 8][8, 1]cpu, R)" = l_x_.redistribute(placements = [R]);  l_x_ = None
        return (y,)
"""


def test_collectives_of_dtensor_are_not_in_the_captured_graph(graph: str) -> None:
    """Nothing says that there are none: the report says that they are not seen."""
    assert not list(collectives_of(run_of(0, DTENSOR)))
    assert unseen_collectives(run_of(0, DTENSOR)) == UNSEEN
    assert unseen_collectives(run_of(0, filled(graph))) is None
    lower = StageRef("0/0/inference-graph", "inference-graph", "python", len(DTENSOR))
    deep = run_of(0, DTENSOR)
    (compile,) = deep.report.compiles
    deep = run_of(0, DTENSOR, (replace(compile, stages=(*compile.stages, lower)),))
    assert unseen_collectives(deep) is None


@pytest.mark.parametrize(
    ("detail", "wanted"),
    [("f32[4, 8][8, 1]cpu", 128), ("bf16[2][1]cuda:0", 4), ("b8[3][1]cpu", 3), ("i64[][]cpu", 8),
     ("f8e4m3fn[16][1]cpu", 16), ("f32[s0, 8][8, 1]cpu", None), ("", None)],
)  # fmt: skip
def test_bytes_of_a_printed_tensor(detail: str, wanted: int | None) -> None:
    assert bytes_of(detail) == wanted


def test_which_ranks() -> None:
    assert ranks_of("", 1024) == (0, 1023)
    assert ranks_of("", 1) == (0,)
    assert ranks_of("37, 0-2,1", 64) == (37, 0, 1, 2)


@pytest.mark.parametrize("given", ["64", "a", "-1", "3-1", "0,,1", "0-300"])
def test_ranks_that_cannot_be(given: str) -> None:
    with pytest.raises(LookupError, match=r"^--ranks "):
        ranks_of(given, 64 if given == "64" else 1024)


def test_the_variables_of_a_rank() -> None:
    spec = rank_spec(RunSpec("train.py", env={"A": "b"}), 1024, 37)
    assert spec.env is not None
    assert {
        "RANK": "37",
        "WORLD_SIZE": "1024",
        "LOCAL_RANK": "5",
        "GROUP_RANK": "4",
        "A": "b",
    }.items() <= spec.env.items()
    assert (spec.world, spec.rank, spec.fake_group) == (1024, 37, True)


def test_a_cache_that_serves_one_rank_only() -> None:
    def ran(rank: int, found: str) -> RankRun:
        stage = StageRef("0/0/cache-key", "cache-key", "plaintext", 0)
        run = run_of(rank, "", (a_compile(stages=(stage,), outcome=CompileOutcome.COMPILED),))
        return RankRun(run.rank, run.report, run.text, lambda id: {"found": found} if found else None)

    (difference,) = differences(ran(0, "hit"), ran(5, "miss"))
    finding = rank_divergence.finding_of(difference, False)
    assert finding.code == "rank-divergence-cache"
    assert "rank 0 has a hit for `forward`, rank 5 has a miss" in finding.message and any(
        "why-miss" in h for h in finding.hints
    )
    assert differences(ran(0, "miss"), ran(5, "miss")) == differences(ran(0, "hit"), ran(5, "")) == []


CODE = """\
def call(args):
    # Topologically Sorted Source Nodes: [y], Original ATen: [aten.add]
    cpp_fused_add_0(arg0_1, buf0)
    # Topologically Sorted Source Nodes: [y, tensor], Original ATen: [aten.add, _c10d_functional.all_reduce]
    torch.ops._c10d_functional.all_reduce_.default(buf0, 'sum', '3')
    return (buf0,)
"""


def test_a_collective_of_generated_code_is_at_the_line_of_the_user(graph: str, tmp_path: Path) -> None:
    text = filled(graph).replace("/lib/site-packages/torch/funcol.py:9", f"{tmp_path / 'train.py'}:4")
    call = {"kernel": "torch.ops._c10d_functional.all_reduce_.default", "handle": 2, "nodes": ["op1"]}
    node = {"name": "op1", "kind": "ExternKernelSchedulerNode", "parts": ["op1"], "origins": ["tensor"]}
    stages = (
        ("dynamo-graph", text, None),
        ("post-grad-graph", text, None),
        *(
            (f"ir-{when}-fusion", "op1: ExternKernelSchedulerNode(FallbackKernel)\n", {"nodes": [node]})
            for when in ("pre", "post")
        ),
        ("output-code", CODE, {"file": "/cjf.py", "calls": [call]}),
    )
    with Store(str(tmp_path / "runs.db")) as store:
        run = store.create_run("/train.py", [], Lane.DEEP, "digest")
        store.put_compile(run, a_compile())
        for at, (name, content, data) in enumerate(stages):
            store.put_stage(run, "0/0", StageRef(f"0/0/{name}", name, "python", len(content)), content, at, data)
        store.set_outcome(run, an_outcome())
        rows = [
            ["0", n, "all_reduce", n, *place]
            for n, place in enumerate((("/cjf.py", 5), ("/cjf.py", 1), ("/train.py", 7), ("/gone.py", 1)))
        ]
        found = at_user_lines(store, store.report(run), [*rows, None, ["0"], ["0", 1, "x", 2, [], {}]])
    assert [tuple(row[4:]) for row in found[:4]] == [
        (str(tmp_path / "train.py"), 4), ("", 0), ("/train.py", 7), ("/gone.py", 1),
    ]  # fmt: skip
    assert found[4:] == [None, ["0"], ["0", 1, "x", 2, [], {}]]


def test_who_waited_for_whom() -> None:
    second = 1_000_000_000

    def arrivals(*times: float) -> list[list[object]]:
        return [["0", n, "all_reduce", int(time * second), "/train.py", 7] for n, time in enumerate(times)]

    alone = ["1", 0, "barrier", 0, "/train.py", 9]  # in a group of its own on this machine
    damaged = [["0", "x"], None]
    (found,) = waits_of(
        {0: [*arrivals(10, 20, 30), alone], 1: arrivals(12, 21, 30), 2: [*arrivals(11, 20, 33), *damaged]}
    )
    assert (found.operation, found.file, found.line, found.calls) == ("all_reduce", "/train.py", 7, 3)
    assert (found.late, found.late_calls, found.longest) == (2, 1, 3.0), "rank 1 cost 1.5 and 1 s"
    assert dict(zip(found.ranks, found.waited, strict=True)) == {0: 2 + 1 + 3, 1: 3, 2: 1 + 1}
    assert found.seconds == 11 and waits_of({0: arrivals(1)}) == ()
    assert (found.typical, found.before_file) == (3.0, ""), "older runs do not know what was before"


def test_one_call_of_several_in_a_step_is_waited_in() -> None:
    """Rank 1 sleeps before the first of four, and all wait for the start of rank 0."""
    rows: dict[int, list[list[object]]] = {0: [], 1: []}
    for n in range(40):
        late, milliseconds, line = (0, 5000, 3) if n == 0 else (1, 20, 5) if n % 4 == 0 else (n % 2, 0.5, 7)
        for rank, mine in rows.items():
            time = n * 10_000_000_000 + (int(milliseconds * 1e6) if rank == late else 0)
            before = ["/train.py", line if rank == late else 9, 1]
            mine.append(["0", n, "all_reduce", time, "/train.py", 9, 0, [before]])
    (found,) = waits_of(rows)
    assert (found.late, found.before_line, found.typical, found.longest) == (1, 5, 0.02, 5.0)


def test_on_a_gpu_the_durations_say_who_waited() -> None:
    """The host has enqueued all of them long before."""

    def rows(*milliseconds: float, line: int = 0) -> list[list[object]]:
        place = ("/train.py", 7)
        before = [["/data.py", line, 1], ["/data.py", -1], None] if line else []
        return [["0", n, "all_reduce", n, *place, int(took * 1e6), before] for n, took in enumerate(milliseconds)]

    ranks = {0: rows(20.1, 22.1, 21.1), 1: rows(0.1, 0.1, 0.1, line=5), 2: rows(19.1, 20.1, 20.1)}
    (found,) = waits_of(ranks)
    assert (found.late, found.late_calls, found.before_file, found.before_line) == (1, 3, "/data.py", 5)
    assert found.typical == pytest.approx(20.5e-3) and found.waited[1] == 0
    assert unknown_waits(ranks) is None
    ranks[2][1][6] = -1
    (found,) = waits_of(ranks)
    assert found.calls == 2, "a call without a duration is left out"
    assert unknown_waits(ranks) == NO_DURATIONS


def test_the_line_in_which_only_the_late_rank_was() -> None:
    """All ranks wait 10 ms for their device; one also sleeps 5 ms, and is seen there in each second step."""
    rows: dict[int, list[list[object]]] = {0: [], 1: []}
    for n in range(40):
        for rank, mine in rows.items():
            asleep = [["/train.py", 5, 1]] if rank == 1 and n % 2 else []
            time = n * 1_000_000_000 + 5_000_000 * rank
            mine.append(["0", n, "all_reduce", time, "/train.py", 9, 0, [["/train.py", 7, 1], *asleep]])
    (found,) = waits_of(rows)
    assert (found.late, found.before_line, found.typical) == (1, 5, 0.005)


def test_the_lines_in_which_a_rank_was() -> None:
    where = Whereabouts()
    where._looks.extend(
        [(0, "a.py", 1), (10, "a.py", 2), (40, "a.py", 2), (50, "", 0), (90, "a.py", 3), (95, "a.py", 9)]
    )
    assert where.between(0, 100, ("a.py", 9)) == [["a.py", 2, 2], ["a.py", 1, 1], ["a.py", 3, 1]]
    assert where.between(5, 12, ("a.py", 9)) == [["a.py", 2, 1]]
    assert where.between(95, 100, ("a.py", 9)) == [["a.py", 9, 1]], "it was in that line all the time"
    assert where.between(96, 100, ("a.py", 9)) == [] == Whereabouts().between(0, 9, ("a.py", 9))


def test_output_code_is_not_a_line_of_the_user(tmp_path: Path) -> None:
    (file := tmp_path / "code.py").write_text("found = place_in(ident)\n", encoding="utf-8")
    names: dict[str, Any] = {"place_in": place_in, "ident": threading.get_ident()}
    for module, wanted in (("__main__", file), ("torch._inductor.runtime.compile_tasks.x", Path(__file__))):
        names["__name__"] = module
        exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), names)
        assert Path(names["found"][0]).name == wanted.name


def test_a_rank_is_looked_at_only_while_there_is_a_process_group() -> None:
    where, module = Whereabouts(), ModuleType("distributed_c10d")
    vars(module)["_update_default_pg"] = lambda group: None
    undo = where.hooks()[0].apply(module)
    assert not where.is_looking
    vars(module)["_update_default_pg"](object())
    while not where._looks:
        time.sleep(0.01)
    vars(module)["_update_default_pg"](None)
    assert not where.is_looking
    vars(module)["_update_default_pg"](object())
    undo()
    assert not where.is_looking, "the capture has ended"


def test_the_line_of_a_backward() -> None:
    where, autograd = Whereabouts(), ModuleType("autograd")
    seen: list[tuple[str, int]] = []
    vars(autograd)["_engine_run_backward"] = lambda: seen.append(where.at(time.time_ns()))
    undo = where.hooks()[1].apply(autograd)
    where._looking = object()
    vars(autograd)["_engine_run_backward"]()
    undo()
    (place,) = seen
    assert Path(place[0]).name == Path(__file__).name and where.at(0) == ("", 0) == where.at(time.time_ns())


TORCHRUN = {
    "RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4", "TORCHELASTIC_RUN_ID": "job",
    "MASTER_PORT": "1",
}  # fmt: skip
SLURM = {"SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURM_LOCALID": "0", "SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0"}


def test_the_job_of_a_launcher() -> None:
    job = job_of(TORCHRUN)
    assert job is not None and (job.world, job.rank, job.local_rank, job.local_world) == (8, 5, 1, 4) and not job.merges
    again, other = job_of({**TORCHRUN, "RANK": "6"}), job_of({**TORCHRUN, "MASTER_PORT": "2"})
    assert again is not None and other is not None and again.name == job.name != other.name
    for per_node, wanted in (("4", 4), ("2(x2)", 2), ("3,1", 0), ("2(x2),1", 0)):
        of_slurm = job_of({**SLURM, "SLURM_STEP_TASKS_PER_NODE": per_node})
        assert of_slurm is not None and of_slurm.merges and of_slurm.local_world == wanted
    for variables in ({}, {**TORCHRUN, "RANK": "x"}, {**TORCHRUN, "RANK": "8"}, {**SLURM, "SLURM_NTASKS": "1"}):
        assert job_of(variables) is None


def test_the_ranks_of_a_job_find_each_other(tmp_path: Path) -> None:
    job = job_of({**TORCHRUN, "RANK": "4", "LOCAL_RANK": "0"})
    assert job is not None
    with Store(str(tmp_path / "runs.db")) as store:
        runs = {
            (name, rank): store.create_run("/train.py", (), Lane.FAST, "", {"world": 8, "rank": rank, "job": name})
            for name, rank in [(job.name, 4), (job.name, 6), (job.name, 5), ("other", 7)]
        }
        for run in runs.values():
            store.set_outcome(run, an_outcome())
        own = RankDone(4, runs[job.name, 4], an_outcome())
        found = others_of(job, store, own, seconds=0)
    assert [(one.rank, one.run) for one in found] == [(rank, runs[job.name, rank]) for rank in (4, 5, 6)]


def test_torchrun_gets_its_options_and_the_ranks_get_the_rest() -> None:
    given = [
        "--nproc-per-node",
        "2",
        "--nnodes=2",
        "--lane",
        "fast",
        "--rdzv-id",
        "7",
        "train.py",
        "--",
        "--nnodes",
        "9",
    ]
    command = command_of(read(["run", *given]), given)
    launcher, rest = command[: command.index("run")], command[command.index("run") :]
    assert launcher[1:-1] == ["-m", "torch.distributed.run", "--nproc-per-node=2", "--nnodes=2", "--rdzv-id=7"]
    assert rest == ["run", "--lane", "fast", "train.py", "--", "--nnodes", "9"]
    alone = ["--nnodes", "2", "train.py"]
    with pytest.raises(LookupError, match="--nproc-per-node"):
        command_of(read(["run", *alone]), alone)
