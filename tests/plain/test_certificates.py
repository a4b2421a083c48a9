"""Whether a real device got the kernels that were predicted for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from irscope.comparing.certificates import Certificate, Side, certify, comparable_code
from irscope.protocol import Compile, CompileOutcome, Kernel, Outcome, OutcomeKind, Report, StageRef

SOURCE = """\
import triton
@triton_heuristics.pointwise(
    inductor_meta={'backend_hash': '0A', 'num_load': 1},
)
def k(x):
    y = x + 1
"""
PTX = '.version 9.0\n.target sm_90a\n\t.loc\t1 18 0 // a.py:18\n\tadd.f32 %f1, %f2;\n\t.section\t.debug_info\n"/a"'
BINARY = '{"triton_version": "3.6.0"}'


def side(sources: dict[str, str], ptx: str = PTX, config: str = "XBLOCK: 256", target: str = "") -> Side:
    compile = "0/0" + (f"/{target}" if target else "")
    kernels = tuple(
        Kernel(name, "triton", compile, f"{compile}/kernel/{name}", (), target) if target else
        Kernel(name, "triton", compile, f"{compile}/kernel/{name}", ())
        for name in sources
    )  # fmt: skip
    texts = {kernel.stage: sources[kernel.name] for kernel in kernels}
    texts |= {f"{kernel.stage}/ptx": ptx for kernel in kernels} | {
        f"{kernel.stage}/binary": BINARY for kernel in kernels
    }
    stages = tuple(StageRef(id, id.rpartition("/")[2], "ptx", 1) for id in texts if id.endswith(("/ptx", "/binary")))
    own = Compile(compile, "f", "s.py", 1, CompileOutcome.COMPILED, 0, 1, 0.1, stages=stages)
    report = Report(1, "run", "s.py", "2.11.0", Outcome(OutcomeKind.COMPLETED, 0, "", 1.0), (own,), (), kernels, ())
    return Side(report, texts.__getitem__, lambda _: {"config": config})


def certified(real: Side, predicted: Side) -> Certificate:
    return certify("h100", "NVIDIA H100 80GB HBM3", real, predicted)


def test_the_same_kernels() -> None:
    elsewhere = SOURCE.replace("'0A'", "'1B'")
    found = certified(side({"k": SOURCE}), side({"k": elsewhere}, PTX.replace("9.0", "8.7").replace("18", "17")))
    assert found.holds
    assert (found.kernels, found.same, found.code_compared, found.code_same) == (1, 1, 1, 1)
    assert found.triton == ("3.6.0", "3.6.0")


@pytest.mark.parametrize(
    ("predicted", "source", "ptx", "why"),
    [
        (side({"k": SOURCE.replace("+ 1", "+ 2")}), "different", "unknown",
         "1 line of the device's and 1 line of the prediction differ"),
        (side({"k": SOURCE.replace("num_load': 1", "num_load': 2")}), "different", "unknown",
         "only what Inductor writes about the kernel differs, not its code"),
        (side({"other": SOURCE.replace("def k", "def other")}), "missing", "unknown", "no kernel of this name"),
        (side({"k": SOURCE}, PTX.replace("add", "sub")), "same", "different",
         "machine code: 1 line of the device's and 1 line of the prediction differ"),
        (side({"k": SOURCE}, config="XBLOCK: 512"), "same", "unknown",
         "the device chose XBLOCK: 256 by timing, not XBLOCK: 512"),
    ],
)  # fmt: skip
def test_what_differs(predicted: Side, source: str, ptx: str, why: str) -> None:
    found = certified(side({"k": SOURCE}), predicted)
    (check,) = found.checks
    assert (check.source, check.code, check.why) == (source, ptx, why)
    assert found.holds == (why.startswith("the device chose"))


def test_a_kernel_with_another_number() -> None:
    named = SOURCE.replace("def k", "def triton_poi_fused_add_3")
    other = named.replace("add_3", "add_5")
    (check,) = certified(side({"triton_poi_fused_add_3": named}), side({"triton_poi_fused_add_5": other})).checks
    assert (check.source, check.why) == ("renumbered", "only its number differs, since earlier kernels differ")


def test_a_kernel_that_the_device_does_not_have() -> None:
    found = certified(side({"k": SOURCE}), side({"k": SOURCE, "more": SOURCE.replace("k(", "more(")}))
    assert found.only_predicted == ("more",) and not found.holds


def test_places_in_ptx() -> None:
    assert comparable_code(PTX) == ".target sm_90a\n\tadd.f32 %f1, %f2;"


def test_a_target_as_a_report_of_its_own() -> None:
    def stage(id: str) -> StageRef:
        return StageRef(id, id.rpartition("/")[2], "python", 1)

    own = Compile("0/0", "f", "s.py", 1, CompileOutcome.COMPILED, 0, 1, 0.1, stages=tuple(
        map(stage, ("0/0/dynamo-graph", "0/0/pre-grad-graph", "0/0/output-code", "0/0/phases"))
    ))  # fmt: skip
    there = replace(own, id="0/0/h100", target="h100", stages=tuple(
        map(stage, ("0/0/h100/pre-grad-graph", "0/0/h100/output-code"))
    ))  # fmt: skip
    kernels: dict[str, Any] = {"kernels": (Kernel("cpp", "cpp", "0/0", "0/0/kernel/cpp", ()),)}
    predicted = (Kernel("k", "triton", "0/0/h100", "0/0/h100/kernel/k", (), target="h100"),)
    report = replace(side({}).report, compiles=(own,), predictions=(there,), predicted_kernels=predicted, **kernels)
    found = report.of_target("h100")
    assert [each.id for each in found.compiles[0].stages] == [
        "0/0/dynamo-graph", "0/0/h100/pre-grad-graph", "0/0/h100/output-code"
    ]  # fmt: skip
    assert found.kernels == predicted and found.predictions == ()
    with pytest.raises(LookupError, match="no predictions for l4"):
        report.of_target("l4")
