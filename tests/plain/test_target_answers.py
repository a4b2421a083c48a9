"""What the commands answer for a target of a run: of its own kernels, never of those that the script got here."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest
from facts import a_compile, a_kernel, an_outcome
from irscope.cli.main import main
from irscope.pipelines.dynamo_stages import GUARDS
from irscope.protocol import CompileOutcome, Lane, StageRef
from irscope.reporting.page import page_of
from irscope.reporting.redaction import Redaction
from irscope.store.store import Store
from irscope.values.kernel.asking import StoredKernel
from irscope_server.base.stage_uris import uri_of_stage
from irscope_server.stages.documents import document

GRAPH = (Path(__file__).parent / "graphs" / "inference.txt").read_text()


def call(kernel: str, nodes: list[str], size: int) -> dict[str, Any]:
    return {"kernel": kernel, "handle": 1, "nodes": nodes, "origins": [], "reads": size, "writes": size, "flops": None}


def node(name: str, read: str, written: str, parts: list[str] | None = None) -> dict[str, Any]:
    kind = "FusedSchedulerNode" if parts else "SchedulerNode"
    facts = {"name": name, "kind": kind, "parts": parts or [name], "origins": [f"mul_{name[2:]}"]}
    return {**facts, "reads": [[read, 8]], "writes": [[written, 8]]}


BEFORE = [node("op0", "x", "buf0"), node("op1", "buf0", "buf1"), node("op2", "buf1", "buf2")]
APART = {
    "first": {"nodes": ["op0", "op1"], "origins": []}, "second": {"nodes": ["op2"], "origins": []}, "kind": "vertical",
    "reason": "numel mismatch", "buffers": ["buf1"],
}  # fmt: skip
HERE = {
    "ir-pre-fusion": {"nodes": BEFORE}, "ir-post-fusion": {"nodes": [node("op0_op1_op2", "x", "buf2", ["op0", "op1", "op2"])]},
    "fusion": {"fused": [], "refused": []}, "output-code": {"calls": [call("cpp_fused_0", ["op0", "op1", "op2"], 100)]},
}  # fmt: skip
THERE = {
    "ir-pre-fusion": {"nodes": BEFORE},
    "ir-post-fusion": {"nodes": [node("op0_op1", "x", "buf1", ["op0", "op1"]), node("op2", "buf1", "buf2")]},
    "fusion": {"fused": [], "refused": [APART]},
    "output-code": {"calls": [call("triton_0", ["op0", "op1"], 60), call("triton_1", ["op2"], 30)]},
}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A run on the CPU with one compile, and its prediction for an H100."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    with Store(str(tmp_path / "runs.db")) as store:
        run = store.create_run("/model.py", [], Lane.DEEP, "digest")
        for id, target, stages, language in (("0/0", "", HERE, "cpp"), ("0/0/h100", "h100", THERE, "triton")):
            store.put_compile(run, a_compile(id=id, target=target, outcome=CompileOutcome.COMPILED))
            graph = StageRef(f"{id}/post-grad-graph", "post-grad-graph", "python", 0, nodes=4, target=target)
            store.put_stage(run, id, graph, GRAPH, 0)
            for position, (name, data) in enumerate(stages.items(), 1):
                store.put_stage(run, id, StageRef(f"{id}/{name}", name, "python", 0, target=target), "", position, data)
            for each in stages["output-code"]["calls"]:  # type: ignore[index]
                name = each["kernel"]
                stage = f"{id}/kernel/{name}"
                store.put_kernel(run, a_kernel(name=name, stage=stage, compile=id, language=language, target=target))
        store.set_outcome(run, an_outcome())
        yield store


@pytest.fixture
def asked(store: Store, capsys: pytest.CaptureFixture[str]) -> Any:
    """What a command prints, and its exit code."""

    def ask(*words: str) -> tuple[int, str]:
        code = main([words[0], "--store", store.path, *words[1:]])
        said = capsys.readouterr()
        return code, said.out + said.err

    return ask


def test_costs_are_those_of_the_targets_kernels(asked: Any, store: Store) -> None:
    code, printed = asked("show", "--costs", "--target", "h100")
    assert code == 0 and "Lower bound on NVIDIA H100" in printed
    assert [row.split()[0] for row in printed.splitlines()[2:]] == ["triton_0", "triton_1"]
    # Of a device for which nothing was predicted there are no kernels, and those of the CPU are not its own.
    code, printed = asked("show", "--costs", "--target", "a100")
    assert code == 2 and "no predictions for a100. It has: h100." in printed
    code, printed = asked("show", "--costs")
    assert [row.split()[0] for row in printed.splitlines()[1:]] == ["cpp_fused_0"]
    # A GPU was used, and one kernel of the run is the CPU's.
    store.put_facts(store.find_run(), {"device": "NVIDIA H200"})
    code, printed = asked("show", "--costs", "--target", "a100")
    assert code == 2 and "cpp_fused_0" not in printed


def test_why_not_fused_is_answered_for_each_device(asked: Any) -> None:
    _, printed = asked("explain", "--fusion", "op0", "op2")
    own, there = (line for line in printed.splitlines() if line.startswith("0/0"))
    assert own == "0/0/fusion  op0 and op2 are in one kernel."
    assert there == "0/0/h100/fusion  op0 and op2 are two kernels: numel mismatch."
    _, printed = asked("explain", "--fusion", "triton_0", "triton_1", "--target", "h100")
    assert printed.startswith("0/0/h100/fusion  triton_0 and triton_1 are two kernels: numel mismatch.")
    code, printed = asked("explain", "--fusion", "triton_0", "triton_1", "--target", "a100")
    assert code == 2 and "no predictions for a100" in printed


def test_each_graph_of_a_target_is_drawn(asked: Any) -> None:
    _, by_id = asked("graph", "--stage", "0/0/h100/post-grad-graph", "--text")
    _, by_name = asked("graph", "--stage", "post-grad-graph", "--target", "h100", "--text")
    assert by_id == by_name and by_id.startswith("0/0/h100/post-grad-graph: ")
    _, printed = asked("graph", "--stage", "0/0/h100/ir-post-fusion", "--text")
    assert printed.splitlines() == [
        "0/0/h100/ir-post-fusion: 3 nodes",
        "op0_op1: fused",
        "  op0 = mul_0 op0 SchedulerNode",
        "  op1 = mul_1 op1 SchedulerNode <- op0",
        "op2 = mul_2 op2 SchedulerNode <- op1",
    ]
    _, dot = asked("graph", "--stage", "ir-pre-fusion", "--target", "h100")
    assert dot.count("->") == 2
    code, printed = asked("graph", "--stage", "0/0/h100/output-code")
    assert code == 2 and "0/0/h100/ir-post-fusion" in printed


def test_everything_that_is_shown_is_the_targets(asked: Any) -> None:
    for words in (("--kernel", "cpp_fused_0"), ("--compile", "0/0"), ("--stage", "0/0/output-code")):
        assert asked("show", *words)[0] == 0
    code, printed = asked("show", "--kernel", "cpp_fused_0", "--target", "h100")
    assert code == 2 and "triton_0" in printed
    _, printed = asked("show", "--target", "h100", "--json")
    assert [each["id"] for each in json.loads(printed)["compiles"]] == ["0/0/h100"]


TRITON = """\
@triton_heuristics.pointwise(
    size_hints={'x': 1024},
    triton_meta={'signature': {'in_ptr0': '*fp32', 'ks0': 'i64', 's': 'fp32', 'xnumel': 'i32', 'XBLOCK': 'constexpr'},
                 'configs': [{(0,): [['tt.divisibility', 16]], (3,): [['tt.divisibility', 16]], ([],): 1}]},
)
@triton.jit
def triton_0(in_ptr0, ks0, s, xnumel, XBLOCK : tl.constexpr):
    pass
"""


def test_a_kernel_tells_its_size_hints_and_what_16_divides(asked: Any, store: Store) -> None:
    kernel = StageRef("0/0/h100/kernel/triton_0", "kernel", "triton", len(TRITON), target="h100")
    store.put_stage(store.find_run(), "0/0/h100", kernel, TRITON, 20)
    _, printed = asked("show", "--target", "h100", "--kernel", "triton_0")
    told = "# size hints: x 1024\n# divisible by 16: in_ptr0, xnumel\n# not known to be: ks0\n"
    assert printed == TRITON + told  # the numbers of the kernel's lines stay
    _, printed = asked("show", "--target", "h100", "--kernel", "triton_0", "--json")
    (found,) = json.loads(printed)
    assert found["text"] == TRITON and found["size_hints"] == {"x": 1024}
    assert (found["divisible_by_16"], found["others"]) == (["in_ptr0", "xnumel"], ["ks0"])


def test_a_kernel_of_a_target_is_run_with_and_without_the_option(store: Store) -> None:
    run, id = store.find_run(), "0/0/h100/kernel/triton_0"
    store.put_stage(run, "0/0/h100", StageRef(id, "kernel", "triton", len(TRITON), target="h100"), TRITON, 20)
    code = "def call(args):\n    arg0_1, = args\n    triton_0.run(arg0_1, 8, 2.0, 64)\n"
    output = StageRef("0/0/h100/output-code", "output-code", "python", len(code), target="h100")
    store.put_stage(run, "0/0/h100", output, code, 4, THERE["output-code"])
    report = store.report(run)
    for asked in (report, report.of_target("h100")):
        assert StoredKernel(store, asked, "triton_0").request()["kernel"] == "triton_0"


def test_a_report_has_the_targets(store: Store) -> None:
    report = store.report(store.find_run())
    page = page_of(store, report, Redaction((), [report.script]), pictures=False)
    assert "0/0/h100/output-code" in page and "A prediction" in page
    alone = page_of(store, report.of_target("h100"), Redaction((), [report.script]), pictures=False)
    assert "0/0/h100/output-code" in alone and "(0/0/output-code)" not in alone


def test_guards_of_a_target_are_the_scripts_and_those_of_its_code_generator(asked: Any, store: Store) -> None:
    own = (
        "+- LAMBDA_GUARD: 2 <= L['x'].size()[0] <= 4096  # return x * 2  # model.py:5 in f and (_inductor/codegen/cpp.py:9 in g)\n"
        "+- LAMBDA_GUARD: L['x'].size()[1] <= 4096  # return x * 2  # model.py:5 in f and (_inductor/codegen/cpp.py:9 in g)\n"
        "Guard latency = 1.00 us\n"
    )
    there = "+- LAMBDA_GUARD: L['x'].size()[0] <= 2147483647  # _inductor/codegen/simd.py:7 in h\n"
    run = store.find_run()
    for id, text, target, position in (("0/0", own, "", -2), ("0/0/h100", there, "h100", -1)):
        guards = StageRef(f"{id}/{GUARDS.name}", GUARDS.name, GUARDS.language, len(text), target=target)
        store.put_stage(run, id, guards, text, position)
    _, printed = asked("show", "--guards")
    assert "4096" in printed and "2147483647" not in printed and "takes 1 µs" in printed
    _, printed = asked("show", "--guards", "--target", "h100")
    assert printed.startswith("0/0/h100  2 guards\n") and "2 <= L['x'].size()[0]" in printed and "4096" not in printed
    assert "_inductor/codegen/simd.py:7" in next(row for row in printed.splitlines() if "2147483647" in row)
    # What the target has of its own before its graphs does not hide the script's.
    stages = [stage.id for stage in store.report(run).of_target("h100").compiles[0].stages]
    assert stages[:2] == ["0/0/guards", "0/0/h100/guards"]


def test_the_innermost_loop_of_machine_code_is_marked(asked: Any, store: Store) -> None:
    id, ptx = "0/0/h100/kernel/triton_0", "$L_1:\n\tadd.s32 \t%r1, %r1, 1;\n\t@%p1 bra \t$L_1;\n"
    texts = (id, "kernel", TRITON), (f"{id}/ptx", "ptx", ptx), (f"{id}/binary", "binary", "{}")
    for position, (stage, name, text) in enumerate(texts, 30):
        ref = StageRef(stage, name, name, 9, target="h100")
        store.put_stage(store.find_run(), "0/0/h100", ref, text, position, {"config": "XBLOCK: 32"})
    _, printed = asked("show", "--stage", f"{id}/ptx")
    assert printed == ptx.replace("$L_1:\n", "$L_1:  // innermost loop: 2 instructions\n")
    _, printed = asked("show", "--stage", f"{id}/ptx", "--json")
    assert json.loads(printed)[0]["text"] == ptx and json.loads(printed)[0]["loops"][0]["last"] == 3
    # The editor's document has the same mark.
    run = store.find_run()
    archive: Any = SimpleNamespace(
        ask=AsyncMock(side_effect=lambda look: look(store)), report=AsyncMock(side_effect=store.report)
    )
    shown = asyncio.run(document(archive, uri_of_stage(run, f"{id}/ptx", "ptx"), AsyncMock()))
    assert shown.text == ptx.replace("$L_1:\n", "$L_1:  // innermost loop: 2 instructions\n")
