"""What the editor shows of the targets of a run."""

from __future__ import annotations

from irscope.pipelines.inductor.stages import KERNEL, OUTPUT_CODE, POST_GRAD_GRAPH
from irscope.protocol import (
    Compile,
    CompileOutcome,
    Kernel,
    Lane,
    Outcome,
    OutcomeKind,
    Report,
    RunSummary,
    StageRef,
)
from irscope_server.stages.tree import run_tree, stage_named, stages_of

OUTCOME = Outcome(OutcomeKind.COMPLETED, 0, "The script ran to its end.", 1.0)


def ref(id: str, kind: str) -> StageRef:
    return StageRef(id, kind, "python", 10, target="h100" if "h100" in id else "")


def report() -> Report:
    own = Compile("0/0", "f", "/a/s.py", 3, CompileOutcome.COMPILED, 0, 1, 0.5,
                  stages=(ref("0/0/post-grad-graph", POST_GRAD_GRAPH.name),))  # fmt: skip
    there = Compile("0/0/h100", "f", "/a/s.py", 3, CompileOutcome.COMPILED, 0, 1, 0.7, target="h100", stages=(
        ref("0/0/h100/post-grad-graph", POST_GRAD_GRAPH.name), ref("0/0/h100/output-code", OUTPUT_CODE.name),
        ref("0/0/h100/kernel/k", KERNEL.name),
    ))  # fmt: skip
    kernel = Kernel("k", "triton", "0/0/h100", "0/0/h100/kernel/k", (), target="h100")
    return Report(1, "r", "/a/s.py", "2.13.0", OUTCOME, (own,), (), (), (),
                  predictions=(there,), predicted_kernels=(kernel,))  # fmt: skip


def test_a_target_has_a_row_with_its_stages_and_kernels() -> None:
    run = RunSummary("r", "/a/s.py", Lane.DEEP, 0.0, "2.13.0", OUTCOME, 1, 0, 0)
    tree = run_tree(run, report(), lambda path: f"file://{path}", lambda _: "")
    assert [(one.id, one.function) for one in tree.compiles] == [("0/0", "f"), ("0/0/h100", "f · h100")]
    assert [stage.stage for stage in tree.compiles[1].stages] == ["0/0/h100/post-grad-graph", "0/0/h100/output-code"]
    assert [kernel.name for kernel in tree.compiles[1].kernels] == ["k"] and tree.compiles[0].kernels == ()


def test_its_stages_can_be_opened() -> None:
    compile, stage = stage_named(report(), "0/0/h100/output-code")
    assert (compile.target, stage.name) == ("h100", OUTPUT_CODE.name)
    assert "0/0/h100/kernel/k" in [one.stage for one in stages_of(report())]
