"""What is between the start of a collective and its wait: in a graph, in output code, and on the way from one to the other."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from facts import a_compile, an_outcome
from irscope.comparing.ranks.buckets import buckets_of, splits_in
from irscope.comparing.ranks.differences import RankRun
from irscope.comparing.ranks.exposure import beside, beside_bucket, exposed_text, overlap_rows, way
from irscope.comparing.ranks.order import Step, spans_of_code, spans_of_graph, steps_of_code
from irscope.comparing.ranks.overlaps import overlaps_of
from irscope.internals.process_groups import group_sizes
from irscope.protocol import SCHEMA, CompileOutcome, OutcomeKind, Report, StageRef
from irscope_server.language.line_facts import facts_of_texts
from irscope_server.language.line_hovers import overlap_text

TRACED = """\
class GraphModule(torch.nn.Module):
    def forward(self, a: "f32[8, 8][8, 1]cpu", w: "f32[8, 8][8, 1]cpu"):
        gather: "f32[64, 8][8, 1]cpu" = torch.ops._c10d_functional.all_gather_into_tensor.default(a, 8, '3')
        waited: "f32[64, 8][8, 1]cpu" = torch.ops._c10d_functional.wait_tensor.default(gather);  gather = None
        mm: "f32[8, 8][8, 1]cpu" = torch.ops.aten.mm.default(w, w)
        turned: "f32[8, 8][1, 8]cpu" = torch.ops.aten.permute.default(mm, [1, 0])
        return (waited, turned)
"""
MOVED = """\
class <lambda>(torch.nn.Module):
    def forward(self, a: "f32[8, 8][8, 1]cpu", w: "f32[8, 8][8, 1]cpu"):
        gather: "f32[64, 8][8, 1]cpu" = torch.ops._c10d_functional.all_gather_into_tensor.default(a, 8, '3')
        mm: "f32[8, 8][8, 1]cpu" = torch.ops.aten.mm.default(w, w)
        turned: "f32[8, 8][1, 8]cpu" = torch.ops.aten.permute.default(mm, [1, 0])
        waited: "f32[64, 8][8, 1]cpu" = torch.ops._c10d_functional.wait_tensor.default(gather);  gather = None
        return (waited, turned)
"""
COALESCED = """\
class GraphModule(torch.nn.Module):
    def forward(self, a: "f32[8][1]cpu", b: "f32[8][1]cpu"):
        both = torch.ops._c10d_functional.all_reduce_coalesced.default([a, b], 'sum', '0')
        first: "f32[8][1]cpu" = both[0]
        second: "f32[8][1]cpu" = both[1];  both = None
        sine: "f32[8][1]cpu" = torch.ops.aten.sin.default(a)
        one: "f32[8][1]cpu" = torch.ops._c10d_functional.wait_tensor.default(first);  first = None
        two: "f32[8][1]cpu" = torch.ops._c10d_functional.wait_tensor.default(second);  second = None
        kept: "f32[8][1]cpu" = torch.ops._c10d_functional.all_reduce.default(sine, 'avg', '0')
        return (one, two, kept)
"""
CODE = """\
# AOT ID: ['0_inference']
cpp_fused_sin_0 = async_compile.cpp_pybinding(['float*'], r'''
extern "C"  void  kernel(float* in_out_ptr0)
{
    torch.ops._c10d_functional.all_reduce_.default(buf0, 'sum', '0')
}
''')
class Runner:
    def call(self, args):
        buf0 = torch.ops._c10d_functional.all_gather_into_tensor.default(a, 8, '3')
        assert_size_stride(buf0, (64, 8), (8, 1), 'torch.ops._c10d_functional.all_gather_into_tensor.default')
        buf1 = empty_strided_cpu((8, 8), (8, 1), torch.float32)
        # torch.ops._c10d_functional.wait_tensor.default(buf0)
        extern_kernels.mm(w, w, out=buf1)
        buf2 = buf1; del buf1  # reuse
        torch.ops._c10d_functional.all_reduce_.default(buf2, 'sum', '0')
        cpp_fused_sin_0(buf3)
        cpp_fused_sin_0.run(buf4, stream=stream0)
        buf5 = reinterpret_tensor(buf2, (64, ), (1, ), 0)  # alias
        torch.ops._c10d_functional.wait_tensor.default(buf5)
        torch.ops._c10d_functional.wait_tensor.default(buf0)
        torch.ops.inductor.accumulate_grad_.default(buf5, buf6)
        buf7 = torch.ops._c10d_functional.reduce_scatter_tensor.default(buf2, 'sum', 8, '3')
        torch.ops._c10d_functional.wait_tensor.default(buf7)
        return (buf0, buf2, torch.ops.aten.sin)
"""


def told(spans: list[Any]) -> list[tuple[str, int, int, list[str] | None]]:
    return [
        (one.operation, one.start, one.wait, None if one.steps is None else [step.name for step in one.steps])
        for one in spans
    ]


def test_a_graph_in_its_order() -> None:
    assert told(spans_of_graph(TRACED)) == [("all_gather_into_tensor", 3, 4, [])]
    (moved,) = spans_of_graph(MOVED)
    assert told([moved]) == [("all_gather_into_tensor", 3, 6, ["aten.mm"])], "a view is no work"
    assert (moved.node, moved.group, moved.group_size) == ("gather", "3", 8)


def test_of_several_tensors_the_first_that_is_waited_for_counts() -> None:
    both, kept = spans_of_graph(COALESCED)
    assert told([both]) == [("all_reduce_coalesced", 3, 7, ["aten.sin"])] and both.reduction == "sum"
    assert (kept.reduction, kept.wait, kept.steps) == ("avg", 0, None), "its wait is elsewhere"


def test_output_code_in_its_order() -> None:
    assert told(spans_of_code(CODE)) == [
        ("all_gather_into_tensor", 10, 21, ["extern_kernels.mm", "cpp_fused_sin_0", "cpp_fused_sin_0"]),
        ("all_reduce", 16, 20, ["cpp_fused_sin_0", "cpp_fused_sin_0"]),
        ("reduce_scatter_tensor", 23, 24, []),
    ]
    assert [one.group_size for one in spans_of_code(CODE)] == [8, None, 8]


def test_of_a_text_without_end_the_first_collectives_are_read() -> None:
    start = "        buf{0} = torch.ops._c10d_functional.all_gather_into_tensor.default(a, 8, '3')\n        extern_kernels.mm(a, b)\n"
    waits = "".join(f"        torch.ops._c10d_functional.wait_tensor.default(buf{at})\n" for at in range(2000))
    found = spans_of_code("".join(start.format(at) for at in range(2000)) + waits)
    assert (len(found), len(found[0].steps or ()), len(found[-1].steps or ())) == (500, 2000, 1501)


def test_what_calls_cost_is_that_of_each_call() -> None:
    def call(kernel: str, handle: int | None, reads: int, flops: int | None = None) -> dict[str, Any]:
        return {"kernel": kernel, "handle": handle, "reads": reads, "writes": 1, "flops": flops}

    sines = [call("cpp_fused_sin_0", 2, 10), call("cpp_fused_sin_0", 2, 20), call("cpp_fused_sin_0", 3, 40)]
    calls = [call("extern_kernels.mm", 1, 5, 7), *sines]
    assert steps_of_code(CODE, {"calls": calls}) == [
        Step("extern_kernels.mm", 6, 7), Step("cpp_fused_sin_0", 32, None), Step("cpp_fused_sin_0", 41, None),
    ]  # fmt: skip
    damaged: Any
    for damaged in (None, [], {"calls": 3}, {"calls": [None, {"kernel": []}, {"kernel": "extern_kernels.mm"}]}):
        assert steps_of_code(CODE, damaged)[0] == Step("extern_kernels.mm")


def run_of(texts: Mapping[str, str], data: Mapping[str, Any] | None = None) -> RankRun:
    """A run with one compile, by the ends of its stages' IDs their texts; ``NAME/01-PASS`` is a version."""
    stages = [
        StageRef(f"0/0/{id}", _name(id), "python", len(text), passed=id.partition("/01-")[2])
        for id, text in texts.items()
    ]
    compile = a_compile(stages=tuple(stages), outcome=CompileOutcome.COMPILED)
    report = Report(SCHEMA, "run", "/a.py", "2.13.0", an_outcome(kind=OutcomeKind.COMPLETED), (compile,), (), (), ())
    kept = data or {}
    return RankRun(0, report, lambda id: texts[id.removeprefix("0/0/")], lambda id: kept.get(id.removeprefix("0/0/")))


def _name(id: str) -> str:
    return (
        id.partition("/")[0].rstrip("-0123456789").removesuffix("-backward" if not id.startswith("backward") else "!")
    )


ONE = CODE.replace("all_reduce_.default(buf2", "wait_tensor.default(buf9").replace(
    "reduce_scatter_tensor", "wait_tensor"
)


def test_the_way_down_says_who_moved_what() -> None:
    stages = {
        "inference-graph": TRACED, "post-grad-graph/01-raise_comms": MOVED, "post-grad-graph": MOVED, "output-code": ONE,
    }  # fmt: skip
    (found,) = overlaps_of(run_of(stages), world=64)
    assert (found.stage, found.start, found.wait, found.operations) == ("0/0/output-code", 10, 21, 3)
    assert (found.sent_bytes, found.received_bytes, found.group, found.group_size) == (256, 2048, "3", 8)
    assert way(found) == "inference-graph 0 → raise_comms 1 → output-code 3"
    assert beside(found) == "3 (mm, cpp_fused_sin_0, cpp_fused_sin_0)"
    (graph,) = overlaps_of(run_of({"inference-graph": TRACED, "dynamo-graph": TRACED}))
    assert (graph.stage, graph.operations, way(graph)) == ("0/0/inference-graph", 0, ""), (
        "without code the lowest graph"
    )
    (captured,) = overlaps_of(run_of({"dynamo-graph": MOVED}))
    assert (captured.stage, captured.operations) == ("0/0/dynamo-graph", 1)
    cpp = {
        "inference-graph": TRACED,
        "post-grad-graph": MOVED,
        "output-code": "// all_gather in C++: c10d_functional\n",
    }
    assert overlaps_of(run_of(cpp))[0].stage == "0/0/post-grad-graph"


def test_the_group_of_all_ranks_has_the_size_of_the_job() -> None:
    both, kept = overlaps_of(run_of({"dynamo-graph": COALESCED}), world=64)
    assert (both.group_size, both.sent_bytes, kept.operations, beside(kept)) == (64, 64, None, "not waited for here")
    assert overlaps_of(run_of({"dynamo-graph": COALESCED}))[0].group_size is None


def test_a_group_of_some_ranks_has_the_size_that_the_rank_saw() -> None:
    graph = {"dynamo-graph": COALESCED.replace("'0'", "'17'")}
    assert {one.group_size for one in overlaps_of(run_of(graph), world=64)} == {None}
    found = overlaps_of(run_of(graph), world=64, groups={"17": 8})
    assert {one.group_size for one in found} == {8}
    assert overlap_text(found[:1]).startswith("`all_reduce_coalesced` among 8 ranks, sends 64 B, ")


def test_a_backward_has_rows_of_its_own() -> None:
    forward = overlaps_of(run_of({"inference-graph": TRACED}))
    backward = [replace(one, stage="0/0/output-code-backward") for one in forward]
    titles = [row.title for row in overlap_rows([*forward, *backward])]
    assert titles == ["all_gather_into_tensor", "all_gather_into_tensor, backward"]


def test_rows_begin_with_what_runs_beside_nothing() -> None:
    found = overlaps_of(run_of({"inference-graph": TRACED, "inference-graph-2": MOVED, "inference-graph-3": MOVED}))
    rows = overlap_rows(found)
    assert [(row.calls, row.sent, row.first.operations) for row in rows] == [(1, 256, 0), (1, 256, 1), (1, 256, 1)]
    same = overlap_rows([*found, *found])
    assert [(row.calls, row.sent) for row in same] == [(2, 512)] * 3
    assert exposed_text(found) == "1 of 3 collectives (256 B of 768 B) runs beside nothing: the rank only waits"
    assert exposed_text(found[1:]) == "None of 2 collectives runs beside nothing"


SPLIT = """\
class GraphModule(torch.nn.Module):
    def forward(self, L_self_parameters_w_: "f32[4, 4]", L_x_: "f32[2, 4]", L_self_parameters_v_: "f32[4, 4]", L_self_parameters_b_: "f32[4]"):
        l_self_parameters_w_ = L_self_parameters_w_
        l_x_ = L_x_
        l_self_parameters_v_ = L_self_parameters_v_
        l_self_parameters_b_ = L_self_parameters_b_

        # No stacktrace found for following nodes
        submod_0 = self.submod_0(l_x_, l_self_parameters_w_);  l_x_ = None
        submod_1 = self.submod_1(submod_0, l_self_parameters_v_, l_self_parameters_b_);  submod_0 = l_self_parameters_v_ = None
        submod_2 = self.submod_2(submod_1, l_self_parameters_w_);  submod_1 = l_self_parameters_w_ = None
        return (submod_2,)

    class submod_0(torch.nn.Module):
        def forward(self, l_x_: "f32[2, 4]", l_self_parameters_w_: "f32[4, 4]"):
            y: "f32[2, 4]" = l_x_ @ l_self_parameters_w_;  l_x_ = l_self_parameters_w_ = None
            return y
"""


def backward(number: int, kernels: int) -> str:
    calls = "".join(f"        extern_kernels.mm(buf{at}, buf{at}, out=buf{at + 1})\n" for at in range(kernels))
    return f"# AOT ID: ['{number}_backward']\nclass Runner:\n    def call(self, args):\n{calls}        return (buf0,)\n"


def test_the_parts_of_ddp_and_their_parameters() -> None:
    assert splits_in(SPLIT) == [("submod_0", 0, 0), ("submod_1", 2, 80), ("submod_2", 1, 64)]
    with pytest.raises(ValueError, match="not a printed FX graph"):
        splits_in("class GraphModule(")


def test_a_bucket_runs_beside_the_backwards_that_are_still_to_come() -> None:
    """They are lowered in the order of the backward: the first output code is that of the last part."""
    forwards = {f"output-code{n}": f"# AOT ID: ['{at}_forward']\n" for n, at in (("", 4), ("-2", 5), ("-3", 6))}
    graphs = {f"{side}-graph{n}": MOVED for side in ("forward", "backward") for n in ("", "-2", "-3")}
    codes = {
        "output-code-backward": backward(6, 5),
        "output-code-backward-2": backward(5, 3),
        "output-code-backward-3": backward(4, 1),
    }
    found = list(buckets_of(run_of({"bucket-splits": SPLIT, **graphs, **forwards, **codes})))
    assert [(one.number, one.name, one.bytes, one.backward.rpartition("/")[2], one.operations) for one in found] == [
        (1, "submod_2", 64, "output-code-backward", 4),
        (2, "submod_1", 80, "output-code-backward-2", 1),
        (3, "submod_0", 0, "output-code-backward-3", 0),
    ]
    assert [beside_bucket(one) for one in found] == [
        "the backward of 2 parts: 4 operations", "the backward of 1 part: 1 operation", "nothing in this graph",
    ]  # fmt: skip
    alone = list(buckets_of(run_of({"bucket-splits": SPLIT})))
    assert [(one.backward, one.beside) for one in alone] == [("", ())] * 3, "the fast lane has no backward"
    assert list(buckets_of(run_of({"bucket-splits": "class GraphModule("}))) == []


def test_a_line_says_what_runs_beside_its_collectives() -> None:
    exposed, moved = (
        replace(one, file="/a.py", line=line)
        for line, one in zip(
            (3, 7), overlaps_of(run_of({"inference-graph": TRACED, "inference-graph-2": MOVED})), strict=True
        )
    )
    facts = facts_of_texts([], overlaps=[exposed, exposed, moved])
    (lines,) = facts.overlaps.values()
    assert {line: len(found) for line, found in lines.items()} == {3: 2, 7: 1}
    assert (
        overlap_text(lines[3])
        == "`all_gather_into_tensor` ×2 among 8 ranks, sends 512 B, beside it: nothing: the rank only waits"
    )
    assert overlap_text(lines[7]).startswith("`all_gather_into_tensor` among 8 ranks, sends 256 B, beside it: 1 ")
    assert overlap_text([]) == ""


def test_the_groups_of_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "torch.distributed.distributed_c10d"
    monkeypatch.delitem(sys.modules, name, raising=False)
    assert group_sizes() == {}, "the script has not imported it"
    whole, part = object(), object()
    world = SimpleNamespace(pg_names={whole: "0", part: "17"}, pg_group_ranks={whole: {0: 0, 1: 1, 2: 2}, part: {2: 0}})
    monkeypatch.setitem(sys.modules, name, SimpleNamespace(_world=world))
    assert group_sizes() == {"0": 3, "17": 1}
