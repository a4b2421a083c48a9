"""Findings that this machine cannot make (they need an accelerator, or its compiler), from texts of those that can."""

from __future__ import annotations

import dataclasses
import io
import logging
import re
from pathlib import Path
from typing import Any

import pytest
from facts import a_compile, a_kernel
from irscope.cli.report import finding_lines
from irscope.cli.text import Paint
from irscope.events.compiles import CompileBook
from irscope.events.trace import Record
from irscope.findings import signals
from irscope.findings.book import FindingBook
from irscope.findings.kinds import cache_bypass, cudagraph_skip, fallback, host_sync, missed_fusion, performance_hint
from irscope.findings.kinds.missed_fusion import Refusal
from irscope.findings.moment import Moment
from irscope.internals.target_cuda_graphs import CudaGraphs, LeftOut
from irscope.ir.fusion_reasons import told
from irscope.ir.graphs import parse_graph
from irscope.pipeline_captures.inductor import cuda_graphs, fusion
from irscope.protocol import Finding, Kernel, Origin, Severity
from irscope.vocabulary.units import size

SOURCE = """\
import torch


@torch.compile
def mutates(x, y):
    n = y.sum().item()
    z = y.cpu(); w = y.to("cpu")
    x.add_(1)
    return x * n, z, w
"""
# What a real H100 printed (torch 2.13), with the numbers of lines of the source above.
GRAPH = """\
class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[4][1]cuda:0", L_y_: "f32[4][1]cuda:0", L_c_: "f32[4][1]cpu"):
        l_x_ = L_x_
        l_y_ = L_y_
        l_c_ = L_c_

         # File: FILE:6 in mutates, code: n = y.sum().item()
        sum_1: "f32[][]cuda:0" = l_y_.sum()
        item: "Sym(zuf0)" = sum_1.item();  sum_1 = None

         # File: FILE:7 in mutates, code: z = y.cpu(); w = y.to("cpu")
        cpu: "f32[4][1]cpu" = l_y_.cpu()
        to: "f32[4][1]cpu" = l_y_.to('cpu');  l_y_ = None

         # File: FILE:8 in mutates, code: x.add_(1)
        add_: "f32[4][1]cuda:0" = l_x_.add_(1);  l_x_ = None
        to_1: "f32[4][1]cuda:0" = l_c_.to('cuda')
        to_2: "f64[4][1]cuda:0" = add_.to(torch.float64)
        item_1: "Sym(zuf1)" = l_c_.item();  l_c_ = None

         # File: LIBRARY:1 in helper, code: x.item()
        item_2: "Sym(zuf2)" = add_.item()
        return (item, cpu, to, add_, to_1, to_2, item_1, item_2)
"""
LIMIT = (
    "skipping cudagraph due to function 0 exceeding max re-recording limit (=1) on cudagraph node None due to "
    "cudagraph managed tensor data pointer changed.\ninput name: arg0_1."
)
"""As `torch._inductor.cudagraph_trees` of torch 2.13 warns."""
SKIP = 'skipping cudagraphs due to mutated inputs (1 instances). Found from : \n   File "FILE", line 8, in mutates\n     x.add_(1)\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "gpu.py"
    path.write_text(SOURCE, encoding="utf-8")
    return path


def moment(file: Path, event: str = "", payload: str = "", facts: dict[str, Any] | None = None) -> Moment:
    compile = a_compile(id="0/0", function="mutates", file=str(file), line=4)
    return Moment(Record(event, facts or {}, "0/0", 0, payload), compile, None, False)


def stands_at(finding: Finding, file: Path) -> str:
    """The text that a finding is about."""
    assert finding.file == str(file)
    assert finding.range.start.line == finding.range.end.line
    line = file.read_text(encoding="utf-8").split("\n")[finding.range.start.line - 1]
    return line[finding.range.start.column : finding.range.end.column]


# --- host sync --------------------------------------------------------------------------------------------------------


def graph_of(file: Path) -> str:
    return GRAPH.replace("FILE", str(file)).replace("LIBRARY", logging.__file__)


def test_reads_of_a_value_on_the_device_stand_at_their_calls(file: Path) -> None:
    found = list(host_sync.detect(moment(file, "dynamo_output_graph", graph_of(file))))
    assert [(f.code, stands_at(f, file)) for f in found] == [
        ("host-sync-item", "y.sum().item()"),
        ("host-sync-cpu", "y.cpu()"),
        ("host-sync-to", 'y.to("cpu")'),
    ]
    assert {(f.kind, f.severity, f.compiles) for f in found} == {("host-sync", Severity.INFORMATION, ("0/0",))}


def test_on_the_cpu_there_is_nothing_to_wait_for(file: Path) -> None:
    text = graph_of(file).replace("cuda:0", "cpu")
    assert list(host_sync.detect(moment(file, "dynamo_output_graph", text))) == []
    assert len(host_sync.syncs_in(parse_graph(graph_of(file)))) == 4  # the library's is one, but not the user's
    assert list(host_sync.detect(moment(file, "dynamo_output_graph", "no graph"))) == []


# --- CUDA graphs ------------------------------------------------------------------------------------------------------


def test_a_skip_stands_at_the_line_that_its_text_names(file: Path) -> None:
    (found,) = cudagraph_skip.from_reason(moment(file), SKIP.replace("FILE", str(file)))
    assert (found.kind, found.code, stands_at(found, file)) == ("cudagraph-skip", "cudagraph-skip", "x.add_(1)")
    assert found.message == "This runs without CUDA graphs: mutated inputs (1 instances)."
    assert len(found.hints) == 1
    assert "in place" in found.hints[0]


def test_what_is_predicted_of_cuda_graphs(file: Path) -> None:
    whole = CudaGraphs(False, (SKIP.replace("FILE", str(file)),), 0, 0, (), False)
    assert "no CUDA graph" in cuda_graphs.stage_text(whole) and "x.add_(1)" in cuda_graphs.stage_text(whole)
    (found,) = cudagraph_skip.predicted(moment(file), "h100", *cuda_graphs.skips(whole))
    assert (found.code, stands_at(found, file)) == ("cudagraph-skip-predicted", "x.add_(1)")
    assert found.message == "This would run without CUDA graphs: mutated inputs (1 instances)."
    assert found.targets == ("h100",)
    assert found.cause != next(cudagraph_skip.from_reason(moment(file), SKIP.replace("FILE", str(file)))).cause

    stack = f'  File "{file}", line 6, in mutates\n    n = y.sum().item()'
    outside = tuple(LeftOut(f"op{number}", "unbacked binding ops", stack) for number in (3, 4))
    parts = CudaGraphs(False, (), 2, 5, outside, True)
    text = cuda_graphs.stage_text(parts)
    assert "2 CUDA graphs with 5 of 7 kernels" in text and "one recording for each size" in text and "op4" in text
    (found,) = cudagraph_skip.predicted(moment(file), "h100", *cuda_graphs.skips(parts))
    assert "2 of 7 kernels outside of them, unbacked binding ops" in found.message
    assert found.range.start.line == 6


def test_a_skip_stands_at_the_innermost_line_of_the_user(file: Path) -> None:
    frames = [(str(file), 9), (str(file), 8), (logging.__file__, 3)]
    stack = "".join(f'   File "{name}", line {line}, in f\n     code\n' for name, line in frames)
    (found,) = cudagraph_skip.from_reason(
        moment(file), f"skipping cudagraphs due to mutated inputs. Found from : \n{stack}"
    )
    assert stands_at(found, file) == "x.add_(1)"


def test_a_skip_without_a_line_of_the_user_stands_at_the_function(file: Path) -> None:
    twice = "skipping cudagraphs due to skipping cudagraphs due to cpu device (arg0_1)"  # as torch 2.11 warns
    for reason in (SKIP.replace("FILE", logging.__file__), twice):
        (found,) = cudagraph_skip.from_reason(moment(file), reason)
        assert "skipping" not in found.message
        assert stands_at(found, file) == "mutates"


def test_a_skip_is_read_from_the_metrics_and_from_the_log(file: Path) -> None:
    facts = {
        "cudagraph_skip_reason": "skipping cudagraphs due to multiple devices: device(type='cuda', index=0), device(type='cpu')"
    }
    (found,) = cudagraph_skip.detect(moment(file, "compilation_metrics", facts=facts))
    assert found.message.startswith("This runs without CUDA graphs: multiple devices: device(type='cuda'")
    assert list(cudagraph_skip.detect(moment(file, "compilation_metrics", facts={"cudagraph_skip_reason": None}))) == []

    heard: list[str] = []
    handler = cudagraph_skip.SkipHandler(heard.append)
    logger = logging.getLogger("a log of these tests")
    logger.propagate = False
    logger.addHandler(handler)
    logger.warning("%s", SKIP)
    logger.warning("something else")
    logger.warning("%s", LIMIT)
    assert heard == [SKIP, LIMIT]


def test_a_function_that_was_recorded_too_often_is_a_skip(file: Path) -> None:
    (found,) = cudagraph_skip.from_reason(moment(file), LIMIT)
    assert found.message == (
        "This runs without CUDA graphs: function 0 exceeding max re-recording limit (=1) on cudagraph node None due to "
        "cudagraph managed tensor data pointer changed."
    )
    assert len(found.hints) == 1 and "cudagraph_unexpected_rerecord_limit" in found.hints[0]


def test_the_page_of_skips_quotes_what_is_found_in_its_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[2] / "docs" / "findings" / "cudagraph-skip.md").read_text("utf-8")
    [source] = re.findall(r"^```python\n(import .*?)^```$", page, re.MULTILINE | re.DOTALL)
    [quoted] = re.findall(r"^```text\n(.*?)\n```$", page, re.MULTILINE | re.DOTALL)
    file = tmp_path / "example.py"
    file.write_text(source, encoding="utf-8")
    (found,) = cudagraph_skip.from_reason(moment(file), SKIP.replace("FILE", str(file)).replace("line 8", "line 6"))
    assert stands_at(found, file) == "x.add_(1)"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    shown = [line for line in quoted.split("\n") if line.strip() != "…"]
    assert [line for line in finding_lines(found, Paint(io.StringIO())) if line in shown] == shown != []


# --- what Inductor says -----------------------------------------------------------------------------------------------


def test_a_missed_fusion_stands_at_the_consumer(file: Path) -> None:
    refusals = [
        Refusal(Origin(str(file), 6), Origin(str(file), 8), "memory deps did not match"),
        Refusal(Origin(str(file), 8), Origin(str(file), 8), "device mismatch (cuda:0 vs cpu)"),
    ]
    apart, same_line = missed_fusion.detect(moment(file), refusals)
    assert stands_at(apart, file) == "x.add_(1)"
    assert "Not fused with line 6, whose result it reads: it reads the values in a different order" in apart.message
    assert [place.range.start.line for place in apart.related] == [6]
    assert "another kernel of this line" in same_line.message
    assert "memory between the two kernels." in same_line.explanation
    # C++ code may have both in one function.
    (loops,) = missed_fusion.detect(moment(file), [dataclasses.replace(refusals[1], what="loop")])
    assert "another loop of this line" in loops.message and "memory between the two loops." in loops.explanation


def test_predictions_for_several_targets_at_one_place_name_them_all(file: Path) -> None:
    published: list[Finding] = []
    book = FindingBook(CompileBook(), published.append, lambda _: None)
    order, device = (
        Refusal(Origin(str(file), 6), Origin(str(file), 8), reason)
        for reason in ("memory deps did not match", "device mismatch")
    )
    for target, refusal in (("h100", order), ("mi300x", order), ("l4", device), ("l4", device)):
        book.signal(signals.FUSION_PREDICTED, "0/0", target, [refusal])
    first, both, *_, last = published
    assert first.message.startswith("A prediction for h100: not fused with line 6, ")
    assert both.message.startswith("A prediction for h100, mi300x: not fused with line 6, ")
    assert both.explanation == first.explanation and last.targets == ("h100", "mi300x", "l4")
    assert last.explanation.removeprefix(first.explanation) == (
        "\nFor l4: Not fused with line 6, whose result it reads: device mismatch."
    )


class FakeNode:
    """As much of a scheduler's node as the detection asks for."""

    def __init__(self, name: str, reads: str, file: Path, line: int, extern: bool = False) -> None:
        self.name, self.extern = name, extern
        self.fx = type(
            "Fx", (), {"meta": {"stack_trace": f'  File "{file}", line {line}, in f'}, "all_input_nodes": []}
        )()
        self.read_writes = type("RW", (), {"reads": [type("Dep", (), {"name": reads})()], "writes": []})()
        self.node = type("Ir", (), {"origins": [self.fx]})()

    def get_name(self) -> str:
        return self.name

    def get_buffer_names(self) -> list[str]:
        return [f"buf_{self.name}"]

    def is_extern(self) -> bool:
        return self.extern

    def get_operation_names(self) -> list[str]:
        return [self.name]

    def get_device(self) -> Any:
        return type("Device", (), {"type": "cuda"})()

    def get_nodes(self) -> list[FakeNode]:
        return [self]


@pytest.mark.parametrize(
    ("reason", "extern", "expected"),
    [
        (("memory deps did not match", ()), False, ["memory deps did not match"]),
        (("device mismatch (%s vs %s)", ("cuda:0", "cpu")), False, ["device mismatch (cuda:0 vs cpu)"]),
        (("no shared data", ()), False, []),
        (("intermediate nodes between node1 & node2", ()), False, []),
        (("memory deps did not match", ()), True, []),
        (None, False, []),
    ],
)
def test_a_refusal_counts_where_one_generated_kernel_feeds_the_other(
    file: Path, reason: Any, extern: bool, expected: list[str]
) -> None:
    first = FakeNode("op0", "arg0", file, 6, extern)
    second = FakeNode("op1", "buf_op0", file, 8)
    second.fx.all_input_nodes.append(first.fx)
    reasons = {("op0", "op1"): reason} if reason else {("op5", "op6"): ("memory deps did not match", ())}
    found = missed_fusion._left([first, second], reasons)
    assert [(r.producer.line, r.consumer.line, r.reason) for r in found] == [(6, 8, text) for text in expected]


MIB = 1 << 20


@pytest.mark.parametrize(
    ("call", "read", "written", "is_told"),
    [
        ("extern_kernels.mm", 4 * MIB, 8 * MIB, True),  # int8 → bfloat16
        ("extern_kernels.mm", 8 * MIB, 8 * MIB, False),  # as large as before
        ("extern_kernels.mm", MIB // 4, MIB // 2, False),  # small
        ("extern_kernels.scatter", 4 * MIB, 8 * MIB, False),  # no product
    ],
)
def test_a_weight_that_is_written_larger_before_a_product_reads_it(
    file: Path, monkeypatch: pytest.MonkeyPatch, call: str, read: int, written: int, is_told: bool
) -> None:
    cast, product = FakeNode("op0", "weight", file, 6), FakeNode("op1", "buf_op0", file, 8, True)
    product.fx.all_input_nodes.append(cast.fx)
    product.node.python_kernel_name = call
    monkeypatch.setattr(missed_fusion, "bytes_accessed", lambda node, reads: {"buffer": read if reads else written})
    found = list(missed_fusion._materialized([cast, product]))
    assert len(found) == is_told
    for refusal in found:
        assert (refusal.producer.line, refusal.consumer.line) == (6, 8)
        assert (refusal.moved, refusal.needed) == (20 * MIB, 4 * MIB)  # read, written, and read by the product
        (told,) = missed_fusion.detect(moment(file), [refusal], "h100")
        assert told.code == "materialized-operand-predicted"
        assert f"{size(20 * MIB)} move where {size(4 * MIB)} would do" in told.message


def test_a_library_call_is_an_edge_of_the_schedule(file: Path) -> None:
    """A cast feeds a matrix product, and a sum reads the product."""
    nodes = [
        FakeNode("op0", "x", file, 6),
        FakeNode("op1", "buf_op0", file, 7, True),
        FakeNode("op2", "buf_op1", file, 8),
    ]
    for number, node in enumerate(nodes):
        node.fx.name = f"fx{number}"
    data = fusion.stage_data(fusion.FusionLog(nodes=nodes))
    pairs = [(row["first"]["nodes"], row["second"]["nodes"], row["kind"], row["buffers"]) for row in data["refused"]]
    assert pairs == [(["op0"], ["op1"], "library", ["buf_op0"]), (["op1"], ["op2"], "library", ["buf_op1"])]
    text = fusion.stage_text(data)
    assert "# 2 kept apart although they share a buffer" in text
    assert (
        "op0 [fx0]  |  op1 [fx1]: Inductor cannot fuse it with its own code (a call into a library)  (buf_op0)" in text
    )


def test_a_refusal_does_not_say_the_opposite_of_what_is_shown() -> None:
    assert told("no shared data").startswith("they access the buffer in a different order")
    assert told("numel mismatch") == "numel mismatch"


def test_a_fallback_stands_at_the_call_and_library_kernels_that_are_wanted_are_none(file: Path) -> None:
    origins = (Origin(str(file), 6),)

    def named(name: str) -> Kernel:
        return a_kernel(name=name, language="extern", origins=origins)

    kernels = [named("torch.ops.aten.sum.default"), named("torch.ops.aten.addmm.default"), named("extern_kernels.mm")]
    kernels.append(dataclasses.replace(named("torch.ops.aten.sort.stable"), language="cpp"))
    (found,) = fallback.detect(moment(file), kernels)
    assert (found.code, stands_at(found, file)) == ("fallback-no-lowering", "y.sum()")


def test_a_hint_stands_at_the_function_and_noise_is_none(file: Path) -> None:
    heard: list[str] = []
    handler = performance_hint.HintHandler(heard.append)
    for text in ("Reduction over non-contiguous dims.\nConsider transposing.", "Skip comprehensive padding on CPU"):
        handler.emit(logging.makeLogRecord({"msg": text, "levelno": logging.INFO}))
    (text,) = heard
    (found,) = performance_hint.detect(moment(file), text)
    assert (found.kind, stands_at(found, file)) == ("performance-hint", "mutates")
    assert found.message == "Inductor: Reduction over non-contiguous dims."


def test_listening_for_hints_leaves_the_loggers_as_they_were() -> None:
    before = [
        (logging.getLogger(name).level, len(logging.getLogger(name).handlers)) for name in performance_hint.LOGGERS
    ]
    detach = performance_hint.HintHandler(lambda text: None).attach()
    assert all(logging.getLogger(name).isEnabledFor(logging.INFO) for name in performance_hint.LOGGERS)
    detach()
    after = [
        (logging.getLogger(name).level, len(logging.getLogger(name).handlers)) for name in performance_hint.LOGGERS
    ]
    assert after == before


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (
            '{"cache_bypass_reason": "Unsupported call_function target f.\\nMore"}',
            "Unsupported call_function target f.",
        ),
        ("{}", "PyTorch gives no reason."),
        ("no json", "PyTorch gives no reason."),
    ],
)
def test_a_bypass_says_which_cache_and_why(file: Path, payload: str, message: str) -> None:
    (found,) = cache_bypass.detect(moment(file, "aotautograd_cache_bypass", payload))
    assert (found.kind, found.code, stands_at(found, file)) == ("cache-miss", "aotautograd-cache-bypass", "mutates")
    assert found.message == f"The AOTAutograd cache cannot keep this function: {message}"
