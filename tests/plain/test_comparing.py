"""What changed between two graphs and between two runs, and `irscope diff`."""

from __future__ import annotations

import dataclasses
import io
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from facts import a_compile, a_finding, a_kernel, a_range, an_outcome
from irscope.cli.comparing import comparison_lines
from irscope.cli.main import main
from irscope.cli.text import Paint
from irscope.comparing.graphs import GraphDiff, diff_graphs
from irscope.comparing.pipelines import Figure, PipelineFigures, Timing
from irscope.comparing.runs import Moved, diff_runs
from irscope.ir.graphs import parse_graph
from irscope.protocol import CaptureGap, Compile, CompileOutcome, Finding, Kernel, Lane, StageRef
from irscope.store.store import Store
from irscope_server.panels.changes import summary
from irscope_server.running.since_last_run import in_short, run_before

GRAPHS = sorted((Path(__file__).parent / "graphs").glob("*.txt"))
MODEL = "/home/me/model.py"

BEFORE = """\
class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[4, 8]", L_y_: "f32[4, 8]"):
        relu: "f32[4, 8]" = torch.relu(L_x_)
        mul: "f32[4, 8]" = relu * 2
        add: "f32[4, 8]" = mul + L_y_
        sum_1: "f32[4]" = add.sum(-1)
        return (sum_1,)
"""


def names(found: GraphDiff) -> dict[str, Any]:
    return {
        "added": [node.name for node in found.added],
        "removed": [node.name for node in found.removed],
        "changed": [(change.before.name, change.after.name, change.what) for change in found.changed],
    }


@pytest.mark.parametrize("path", GRAPHS, ids=lambda path: path.stem)
def test_a_graph_with_other_names_is_the_same(path: Path) -> None:
    text = path.read_text()
    nodes = [node.name for node in parse_graph(text).nodes if node.op not in ("placeholder", "output", "get_attr")]
    numbers = random.Random(0).sample(range(1000), len(nodes))
    new = {name: f"renamed_{number}" for name, number in zip(nodes, numbers, strict=True)}
    renamed = re.sub(r"(?<![\w.])[A-Za-z_]\w*", lambda match: new.get(match[0], match[0]), text)
    found = diff_graphs(text, renamed)
    assert found.same, names(found)
    assert {name: other for name, other in found.pairs if name in new} == new


def test_an_operation_between_two_others() -> None:
    after = BEFORE.replace("mul + L_y_", "tanh + L_y_").replace(
        "        add:", '        tanh: "f32[4, 8]" = torch.tanh(mul)\n        add:'
    )
    assert names(diff_graphs(BEFORE, after)) == {
        "added": ["tanh"], "removed": [], "changed": [("add", "add", ("inputs",))],
    }  # fmt: skip
    assert names(diff_graphs(after, BEFORE))["removed"] == ["tanh"]


def test_an_operation_in_place_of_another() -> None:
    found = names(diff_graphs(BEFORE, BEFORE.replace("relu", "gelu")))
    assert found == {"added": ["gelu"], "removed": ["relu"], "changed": [("mul", "mul", ("inputs",))]}


def test_a_constant_and_a_type() -> None:
    assert names(diff_graphs(BEFORE, BEFORE.replace("* 2", "* 3")))["changed"] == [("mul", "mul", ("arguments",))]
    wider = names(diff_graphs(BEFORE, BEFORE.replace("f32[4, 8]", "f32[4, 16]")))
    assert wider["added"] == wider["removed"] == []
    assert ("relu", "relu", ("type",)) in wider["changed"] and ("sum_1", "sum_1", ("type",)) not in wider["changed"]


def test_inputs_that_changed_places() -> None:
    assert names(diff_graphs(BEFORE, BEFORE.replace("mul + L_y_", "L_y_ + mul")))["changed"] == [
        ("add", "add", ("inputs",))
    ]


def test_what_is_returned() -> None:
    assert names(diff_graphs(BEFORE, BEFORE.replace("(sum_1,)", "(sum_1, mul)")))["changed"] == [
        ("output", "output", ("inputs",))
    ]


def test_of_equal_operations_one_is_gone() -> None:
    """Which of three equal nodes went is told by what the others feed."""
    lines = [f'        r{i}: "f32[4]" = torch.rand(4)\n        s{i}: "f32[4]" = torch.sin{i}(r{i})\n' for i in range(3)]
    head = "class M(torch.nn.Module):\n    def forward(self):\n"
    all_of_them = head + "".join(lines) + "        return (s0, s1, s2)\n"
    two = head + lines[0] + lines[2] + "        return (s0, s2)\n"
    assert names(diff_graphs(all_of_them, two))["removed"] == ["r1", "s1"]


def test_a_long_graph_of_equal_operations() -> None:
    head = 'class M(torch.nn.Module):\n    def forward(self, x: "f32[4]"):\n'
    chain = [f'        a{i}: "f32[4]" = torch.sin({f"a{i - 1}" if i else "x"})\n' for i in range(3000)]
    other = [*chain[:1500], '        extra: "f32[4]" = torch.cos(a1499)\n']
    other += [chain[1500].replace("(a1499)", "(extra)"), *chain[1501:]]
    found = diff_graphs(
        head + "".join(chain) + "        return (a2999,)\n", head + "".join(other) + "        return (a2999,)\n"
    )
    assert names(found) == {"added": ["extra"], "removed": [], "changed": [("a1500", "a1500", ("inputs",))]}


def test_lines_that_moved() -> None:
    moved = Moved({MODEL: "a\nb\nc\nd"}, {MODEL: "new\na\nB\nd"})
    assert [moved.line(MODEL, line) for line in (1, 2, 3, 4)] == [2, None, None, 4]
    assert Moved({MODEL: "a\nb"}, {MODEL: "a\nB"}).line(MODEL, 2) == 2  # rewritten, one line for one
    assert Moved({}, {MODEL: "x"}).line(MODEL, 7) == 7


# --- runs -------------------------------------------------------------------------------------------------------------


def a_run(
    store: Store,
    source: str = "text",
    findings: tuple[Finding, ...] = (),
    compiles: tuple[Compile, ...] = (),
    kernels: tuple[tuple[Kernel, str], ...] = (),
    stages: tuple[tuple[str, str, str], ...] = (),
    lane: Lane = Lane.DEEP,
    pipeline: str = "inductor",
) -> str:
    run = store.create_run(MODEL, [], lane, source, pipeline=pipeline)
    store.put_source(run, MODEL, source)
    for compile in compiles:
        store.put_compile(run, compile)
    for compile_id, name, text in stages:
        store.put_stage(run, compile_id, StageRef(f"{compile_id}/{name}", name, "python", 0), text, 0)
    for kernel, text in kernels:
        store.put_stage(run, kernel.compile, StageRef(kernel.stage, "kernel", "cpp", 0), text, 9)
        store.put_kernel(run, kernel)
    for finding in findings:
        store.put_finding(run, finding)
    store.set_outcome(run, an_outcome())
    return run


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with Store(str(tmp_path / "runs.db")) as store:
        yield store


def test_findings_are_followed_through_an_edit(store: Store) -> None:
    one, two = a_finding(range=a_range(2, 0, 2, 3)), a_finding(range=a_range(3, 0, 3, 3), code="GB0001")
    before = a_run(store, "a\nbreaks\nbreaks too\n", (one, two))
    after = a_run(store, "a\nnew\nbreaks\nfixed\n", (dataclasses.replace(one, range=a_range(3, 0, 3, 3)),))
    found = diff_runs(store, before, after)
    assert (found.findings_new, [f.code for f in found.findings_gone], found.findings_kept) == ((), ["GB0001"], 1)
    back = diff_runs(store, after, before)
    assert ([f.code for f in back.findings_new], back.findings_gone, back.findings_kept) == (["GB0001"], (), 1)


def test_a_second_finding_of_the_same_words_is_new(store: Store) -> None:
    one = a_finding(range=a_range(1, 0, 1, 3))
    two = a_finding(range=a_range(1, 5, 1, 8))
    found = diff_runs(store, a_run(store, "x = f() + f()", (one,)), a_run(store, "x = f() + f()", (one, two)))
    assert (len(found.findings_new), found.findings_gone, found.findings_kept) == (1, (), 1)


def test_compiles_are_followed_through_an_edit(store: Store) -> None:
    first = a_compile(id="0/0", function="f", line=1, program="Net")
    resumed = a_compile(id="1/0", function="torch_dynamo_resume_in_f_at_2", line=2)
    before = a_run(store, "def f():\n    print()\n", compiles=(first, resumed))
    moved = (
        dataclasses.replace(first, line=2),
        dataclasses.replace(resumed, line=3, function="torch_dynamo_resume_in_f_at_3"),
    )
    found = diff_runs(store, before, a_run(store, "# new\ndef f():\n    print()\n", compiles=moved))
    assert found.same and found.compiles_same == 2
    more = dataclasses.replace(moved[0], graph_ops=8)
    found = diff_runs(store, before, a_run(store, "# new\ndef f():\n    print()\n", compiles=(more,)))
    (change,) = found.compiles_changed
    assert change.title == moved[0].title == "Net", "one name, as in all views"
    assert (change.function, change.ops and (change.ops.before, change.ops.after)) == ("f", (7, 8))
    assert [compile.id for compile in found.compiles_gone] == ["1/0"] and not found.same


def test_methods_of_one_name_are_paired_by_their_class(store: Store) -> None:
    attention = a_compile(id="0/0", function="forward", qualified="Attention.forward", line=4)
    net = a_compile(id="1/0", function="forward", qualified="Net.forward", line=9)
    before = a_run(store, "old", compiles=(attention, net))
    after = a_run(store, "new", compiles=(dataclasses.replace(net, id="0/0", line=20),))
    found = diff_runs(store, before, after)
    assert [compile.qualified for compile in found.compiles_gone] == ["Attention.forward"]
    assert (found.compiles_same, found.compiles_new) == (1, ())


def test_what_is_new_is_told_first_and_never_left_out(store: Store) -> None:
    """As after a fix that removes one finding and brings four."""
    lost = [
        a_finding(code=f"GB{n}", kind=kind) for n, kind in enumerate(("graph-break", "skipped-frame", "compile-error"))
    ]
    new = [a_finding(code=f"N{n}", kind="recompilation") for n in range(3)] + [a_finding(code="N9", kind="graph-break")]
    found = diff_runs(store, a_run(store, "1", tuple(lost)), a_run(store, "1", tuple(new)))
    assert in_short(found) == "3 new recompiles · 1 new break · 1 break fixed · 2 other changes"
    kinds = ("graph-break", "skipped-frame", "compile-error", "recompilation", "host-sync")
    every = [a_finding(code=f"N{n}", kind=kind) for n, kind in enumerate(kinds)]
    found = diff_runs(store, a_run(store, "1", (lost[0],)), a_run(store, "1", tuple(every)))
    said = in_short(found).split(" · ")
    assert len(said) == 6 and all(" new " in f" {each}" for each in said[:5]) and said[5] == "1 break fixed"


def test_the_compile_time_of_a_profile_is_not_compared_with_that_of_a_run(store: Store) -> None:
    before, after = (a_run(store, "1", compiles=(a_compile(seconds=seconds),)) for seconds in (2.0, 60.0))
    found = diff_runs(store, before, after)
    assert in_short(found) == "+58.0 s" and in_short(found, is_alike=False) == ""


def test_a_stage_that_only_names_other_lines_is_the_same(store: Store) -> None:
    compile = a_compile(function="f")
    graph = BEFORE.replace("        relu:", "         # File: /home/me/model.py:1 in f, code: relu\n        relu:")
    before = a_run(store, "1", compiles=(compile,), stages=(("0/0", "dynamo-graph", graph),))
    shifted = graph.replace("model.py:1 in", "model.py:9 in")
    assert diff_runs(
        store, before, a_run(store, "1", compiles=(compile,), stages=(("0/0", "dynamo-graph", shifted),))
    ).same
    other = graph.replace("* 2", "* 3")
    found = diff_runs(store, before, a_run(store, "1", compiles=(compile,), stages=(("0/0", "dynamo-graph", other),)))
    assert found.compiles_changed[0].stages == ("dynamo-graph",)


def test_two_targets_are_compared(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    def kernel(target: str, name: str, body: str) -> tuple[Kernel, str]:
        compile = f"0/0/{target}"
        found = a_kernel(name=name, stage=f"{compile}/kernel/{name}", compile=compile, language="triton", target=target)
        return found, f"DeviceProperties(type='cuda', cc={len(target)}0)\n{body}"

    own = a_compile(function="f", id="0/0")
    compiles = (own, *(dataclasses.replace(own, id=f"0/0/{name}", target=name) for name in ("h100", "mi300x")))
    kernels = (
        kernel("h100", "triton_0", "add"), kernel("h100", "triton_1", "a tile"),
        kernel("mi300x", "triton_0", "add"), kernel("mi300x", "triton_1", "another tile"),
    )  # fmt: skip
    code = (("0/0/h100", "output-code", "DeviceProperties(cc=90)\ncall"), ("0/0/mi300x", "output-code", "call other"))
    run = a_run(store, compiles=compiles, kernels=kernels, stages=code)
    found = diff_runs(store, run, run, ("h100", "mi300x"))
    assert found.targets == ("h100", "mi300x") and found.kernels_kept == 1 and not found.same
    assert [each.name for each in found.kernels_changed] == ["triton_1"]
    assert found.kernels_gone == found.kernels_new == ()
    assert [change.stages for change in found.compiles_changed] == [("output-code",)]
    assert diff_runs(store, run, run, ("h100", "h100")).same

    file = ["--store", store.path]
    assert main(["diff", "--target", "h100,mi300x", *file]) == 0
    printed = capsys.readouterr().out
    assert f"{run} for h100 → {run} for mi300x" in printed and "~ kernel triton_1 (triton)" in printed
    assert "kernels: 0 new, 0 gone, 1 changed, 1 kept" in printed
    other = a_run(store, compiles=compiles, kernels=kernels[:1])
    assert main(["diff", run, other, "--target", "h100", *file]) == 0
    assert "- kernel triton_1" in capsys.readouterr().out
    assert main(["diff", "--target", "h100,a100,l4", *file]) == 2
    assert "one target, or two" in capsys.readouterr().err

    words = (("A7F", ""), ("6B0", ", 'is_hip': True"))  # of the vendor, and where the kernel was kept
    same = tuple(
        (f"0/0/{name}", "output-code", f"# kernel path: /{name}\n{{'backend_hash': '{hash}', 'more': False{more}}}")
        for name, (hash, more) in zip(("h100", "mi300x"), words, strict=True)
    )
    run_of_same = a_run(store, compiles=compiles, stages=same)
    assert diff_runs(store, run_of_same, run_of_same, ("h100", "mi300x")).same


def test_targets_that_nothing_was_compiled_for_are_not_called_the_same(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    own = a_compile(function="f", id="0/0")
    made = dataclasses.replace(own, id="0/0/h100", target="h100")
    failed = dataclasses.replace(own, id="0/0/a100", target="a100", outcome=CompileOutcome.ERROR)
    run = a_run(store, compiles=(own, made, failed))
    store.put_gap(run, CaptureGap("kernels for a100", "It needs the package triton."))
    for targets in ("h100,a100", "a100,h100", "a100,a100"):
        assert main(["diff", run, run, "--target", targets, "--store", store.path]) == 2
        said = capsys.readouterr().err
        assert f"Run {run} predicted no kernels for a100. It needs the package triton." in said
    assert diff_runs(store, run, run, ("h100", "h100")).same


def test_kernels_are_the_same_where_their_code_is(store: Store) -> None:
    def kernel(name: str) -> Kernel:
        return a_kernel(name=name, stage=f"0/0/kernel/{name}", compile="0/0")

    compiles = (a_compile(),)
    before = a_run(
        store, compiles=compiles, kernels=((kernel("k_0"), "void k_0() {\n a; }"), (kernel("k_1"), "void k_1() { b; }"))
    )
    profiled = (
        "#include <torch/csrc/inductor/aoti_runtime/utils.h>\n"
        'void k_3() {\n torch::aot_inductor::RAIIAtenRecordFunctionHandle r_("k_3", nullptr);\n a; }'
    )
    after = a_run(store, compiles=compiles, kernels=((kernel("k_3"), profiled), (kernel("k_1"), "void k_1() { c; }")))
    found = diff_runs(store, before, after)
    assert [k.name for k in found.kernels_new] == ["k_1"] and [k.name for k in found.kernels_gone] == ["k_1"]
    assert found.kernels_kept == 1


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.fixture
def diff(store: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("NO_COLOR", "1")

    def run(*args: str, code: int = 0) -> str:
        assert main(["diff", "--store", store.path, *args]) == code
        captured = capsys.readouterr()
        return captured.out if code == 0 else captured.err

    return run


def test_without_names_it_is_the_newest_run_and_the_one_before(store: Store, diff: Any) -> None:
    a_run(store, "x", (a_finding(),))
    first = a_run(store, "x", (a_finding(),))
    a_run(store, "x", lane=Lane.FAST)
    last = a_run(store, "x")
    shown = diff()
    assert shown.startswith(f"{first} → {last}\n  - ") and "GB0059" in shown and "0 new, 1 gone, 0 kept" in shown
    data = json.loads(diff("--json"))
    assert (data["before"], data["after"], data["same"]) == (first, last, False)
    assert [finding["code"] for finding in data["findings_gone"]] == ["GB0059"]


def test_what_is_new_comes_before_what_is_fixed(store: Store, diff: Any) -> None:
    before = a_run(store, "x\ny", (a_finding(range=a_range(1, 0, 1, 1)),))
    after = a_run(store, "x\ny", (a_finding(range=a_range(2, 0, 2, 1), code="GB0001"),))
    assert re.findall(r"GB\d+", diff()) == ["GB0001", "GB0059"]
    assert summary(diff_runs(store, before, after), 0, 0, 0).startswith("1 new finding · 1 finding fixed")


def test_a_run_is_compared_with_one_of_its_pipeline(store: Store, diff: Any) -> None:
    first = a_run(store, pipeline="tvm")
    a_run(store)
    assert "is the first deep run of" in diff(code=2)
    last = a_run(store, pipeline="tvm")
    assert diff().startswith(f"{first} → {last}\n")
    assert (before := run_before(store.runs(), last, Lane.DEEP)) is not None and before.run == first
    assert "through onnx, so" in diff(a_run(store, pipeline="onnx"), code=2)


def test_runs_of_two_pipelines_say_so(store: Store, diff: Any) -> None:
    stages = (("0/0", "exported-program", BEFORE), ("0/0", "joint-graph", BEFORE))
    first = a_run(store, findings=(a_finding(),), compiles=(a_compile(),), stages=stages, pipeline="export")
    wrapper = dataclasses.replace(a_compile(), function="wrapper", line=90)
    last = a_run(store, compiles=(wrapper,), stages=stages[:1], pipeline="aotinductor")
    shown = diff(first, last).splitlines()
    assert shown[1] == (
        "Two pipelines: export → aotinductor. Compared are findings, compiles, kernels and times, "
        "and the stages that both have: exported-program."
    )
    assert "1 in both" in shown[-2] and "the same" not in shown[-2]
    data = json.loads(diff(first, last, "--json"))
    assert data["pipelines"] == ["export", "aotinductor"] and data["shared_stages"] == ["exported-program"]
    assert data["same"] is False
    other = a_run(store, pipeline="torchscript")
    assert "They have no stage in common" in diff(first, other).splitlines()[1]
    assert "Two pipelines" not in diff(first, a_run(store, pipeline="export"))


def test_there_may_be_nothing_to_compare_with(store: Store, diff: Any) -> None:
    a_run(store)
    assert "is the first deep run of" in diff(code=2)


def test_stages_of_one_run(store: Store, diff: Any) -> None:
    stages = (("0/0", "joint-graph", BEFORE), ("0/0", "forward-graph", BEFORE.replace("* 2", "* 3")))
    a_run(store, compiles=(a_compile(),), stages=(*stages, ("0/0", "output-code", "a\n")))
    shown = diff("--stage", "joint-graph", "0/0/forward-graph")
    assert (
        "  ~ mul = operator.mul  f32[4, 8]  arguments" in shown and "0 added, 0 removed, 1 changed, 6 the same" in shown
    )
    assert "-        mul: " in diff("--stage", "joint-graph", "forward-graph", "--text")
    data = json.loads(diff("--stage", "joint-graph", "forward-graph", "--json"))
    assert [change["before"]["name"] for change in data["graph"]["changed"]] == ["mul"] and data["text"] is None
    assert "+a" in diff("--stage", "joint-graph", "output-code")
    assert "has no stage nothing" in diff("--stage", "nothing", "joint-graph", code=2)
    assert "Name two stages" in diff("--stage", "joint-graph", code=2)


def test_one_stage_of_two_runs(store: Store, diff: Any) -> None:
    runs = [
        a_run(store, compiles=(a_compile(),), stages=(("0/0", "output-code", text),)) for text in ("a\nb\n", "a\nc\n")
    ]
    assert diff(*runs, "--stage", "output-code").splitlines()[-2:] == ["-b", "+c"]
    assert diff(runs[0], runs[0], "--stage", "output-code") == "The texts are the same.\n"


def test_what_a_pipeline_does_not_tell_has_its_reason_once() -> None:
    failed, untold = "ValueError: no weights", "It does not tell its kernels."

    def figures(name: str, problem: str) -> PipelineFigures:
        nothing, time = Figure(None, problem or untold), Timing(None, None, None, 0, problem or "It was not timed.")
        return PipelineFigures(
            pipeline=name, title="A title", run="", problem=problem, operators=nothing, taken=nothing, fused=nothing, gone=(),
            left=(), kernels=nothing, library_calls=nothing, moved_bytes=Figure(4.0, "kernels"), compile_seconds=nothing,
            call=time, eager=time, difference=nothing, relative_difference=nothing, stages=(),
        )  # fmt: skip

    lines = comparison_lines([figures("export", failed), figures("tvm", "")], Paint(io.StringIO()))
    assert lines[lines.index("export  A title") :] == [
        "export  A title",
        f"  failed: {failed}",
        "  bytes moved: by kernels",
        "",
        "tvm  A title",
        f"  no operators, kernels, library calls, compile time, difference: {untold}",
        "  no call, eager: It was not timed.",
        "  bytes moved: by kernels",
    ]
