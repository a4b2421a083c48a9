"""Whose time a trace is: recordings of a real GPU, a CPU's by hand, and traces that are damaged or hostile."""

from __future__ import annotations

import gzip
import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from irscope.cli.main import main
from irscope.comparing.runs import Moved
from irscope.driver.opened_profile import opened
from irscope.driver.profiling import program_of, with_facts
from irscope.ir import kineto
from irscope.ir.kineto import TraceError, read_events
from irscope.ir.roofline import peaks_of
from irscope.pipelines.registry import role_of
from irscope.profiling.changes import compared
from irscope.profiling.joining import Joined
from irscope.profiling.library_kernels import call_family, grouped
from irscope.profiling.measuring import profile_of
from irscope.profiling.profile import CudaGraphs, MeasuredLine, MeasuredProgram, Profile
from irscope.profiling.timeline import Kind, timeline
from irscope.protocol import Kernel, Lane
from irscope.runner.cuda_graphs import GraphWatch
from irscope.store.store import Store
from irscope.vocabulary.stages import Role

RECORDED = Path(__file__).parent / "profiles"


def recorded(name: str, folder: Path, trace: Path | None = None) -> Profile:
    """The profile of a recording, or of a changed copy of its trace, joined to its run."""
    path = folder / "runs.db"
    path.write_bytes(gzip.decompress((RECORDED / f"{name}.db.gz").read_bytes()))
    with Store(str(path)) as store:
        return opened(str(trace or RECORDED / f"{name}.json.gz"), store, store.find_run())


def by_line(found: Profile) -> dict[int, set[str]]:
    return {one.line: set(one.kernels) for one in found.lines}


def event(name: str, start: float, micros: float, cat: str = "cpu_op", tid: object = 1, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "ts": start, "dur": micros, "pid": 1, "tid": tid,
            "args": {key.replace("_", " "): value for key, value in args.items()}}  # fmt: skip


def written(folder: Path, events: list[Any], head: str = "") -> str:
    path = folder / "trace.json"
    path.write_text(f'{{{head}"traceEvents": {json.dumps(events)}}}')
    return str(path)


# --- recordings of a GPU ----------------------------------------------------------------------------------------------


def test_kernels_of_a_gpu_are_on_the_lines_that_they_came_from(tmp_path: Path) -> None:
    found = recorded("inference", tmp_path)
    assert found.steps == 3 and all(one.origins for one in found.kernels)
    assert sum(one.calls for one in found.kernels) == 8
    assert by_line(found)[16] == {"extern_kernels.mm", "triton_per_fused_add_addmm_native_layer_norm_view_0"}
    assert by_line(found)[19] == {"extern_kernels.mm", "triton_poi_fused_addmm_gelu_view_1"}
    assert {one.line: one.calls for one in found.lines} == {14: 2, 15: 1, 16: 2, 19: 3, 20: 2}, "each call by itself"
    assert by_line(found)[15] == {"torch.ops.aten._scaled_dot_product_efficient_attention.default"}
    assert found.device_seconds == pytest.approx(90.2e-6, rel=0.01)
    assert all(one.bound_seconds is not None and one.bound_seconds < one.seconds for one in found.lines)


def test_a_backward_on_a_thread_of_its_own_is_a_part_of_the_step(tmp_path: Path) -> None:
    found = recorded("training", tmp_path)
    backward = [one for one in found.kernels if one.stage.endswith("-backward")]
    assert len(backward) > 8 and all(one.origins for one in backward)
    assert {one.stage for one in backward} == {"0/0/output-code-backward", "1/0/output-code-backward"}
    assert set(by_line(found)) == {14, 15, 16, 19, 20}


def test_kernels_of_a_replayed_cuda_graph_are_joined_by_their_order(tmp_path: Path) -> None:
    found, plain = recorded("graphs", tmp_path), recorded("inference", tmp_path)
    assert found.cuda_graphs.replayed == 1 and found.cuda_graphs.recorded == 0
    assert by_line(found) == by_line(plain)
    assert [one.name for one in found.kernels if not one.origins] == ["aten::_foreach_copy_"], "of the graph's inputs"


def test_on_a_gpu_each_moment_is_counted_once(tmp_path: Path) -> None:
    for name in ("inference", "training", "graphs"):
        found = recorded(name, tmp_path)
        assert sum(one.seconds for one in found.gaps) <= found.step_seconds * (1 + 1e-9)
        assert found.owned_seconds <= found.step_seconds


STEPS = {
    "mlp": {11, 12, 13}, "conv_train": {13, 14, 15}, "gpt_train": {15, 16, 17, 19, 20}, "flex": {10, 11},
    "overhead": {15, 16, 17, 19, 20}, "overhead_train": {15, 16, 17, 19, 20}, "autotune": {7, 8},
    "break": {15, 16, 17, 19, 21, 23}, "skip": {7, 8}, "bert": None,
}  # fmt: skip
"""Recordings of `irscope profile`, with the lines of their kernels, as one reads them from the script."""


@pytest.mark.parametrize("name", STEPS)
def test_kernels_and_steps_of_ten_models_on_a_gpu_have_owners(tmp_path: Path, name: str) -> None:
    path = tmp_path / "runs.db"
    path.write_bytes(gzip.decompress((RECORDED / f"{name}.db.gz").read_bytes()))
    trace = RECORDED / f"{name}.json.gz"
    programs = [program_of(one) for one in json.loads(gzip.decompress(trace.read_bytes()))["irscope"]["programs"]]
    with Store(str(path)) as store:
        report = store.report(store.find_run())
        peaks = peaks_of(store.device_of(report.run))
        found = profile_of(timeline(read_events(str(trace))), Joined(store, report, peaks), report, programs)
    assert found.owned_device_seconds >= 0.98 * found.device_seconds > 0
    assert found.owned_seconds >= 0.95 * found.step_seconds
    assert {one.kind for one in found.gaps}.isdisjoint({"unknown", "profiler"})
    assert {one.line for one in found.lines} == STEPS[name] or (STEPS[name] is None and len(found.lines) == 27)
    calls = [call for one in report.compiles for stage in one.stages if role_of(stage.name) is Role.CODE
             for call in stored_calls(path, report.run, stage.id)]  # fmt: skip
    assert {one.name for one in found.kernels if one.origins} == {call["kernel"] for call in calls}


def test_a_store_that_is_named_is_that_of_the_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store, trace = tmp_path / "runs.db", str(RECORDED / "mlp.json.gz")
    store.write_bytes(gzip.decompress((RECORDED / "mlp.db.gz").read_bytes()))
    lines = []
    for more in (["--store", str(store)], [], ["--store", str(store), "--run", ""]):
        assert main(["open", trace, "--json", *more]) == 0
        lines.append([one["line"] for one in json.loads(capsys.readouterr().out)["lines"]])
    assert sorted(lines[0]) == [11, 12, 13] and lines[0] == lines[2] and lines[1] == [], "exact with it, else none"
    monkeypatch.setenv("IRSCOPE_STORE", str(store))
    assert main(["open", trace, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["lines"] == [], "the usual store has many runs: none is meant"


def test_a_trace_is_joined_to_the_newest_run_that_fits(tmp_path: Path) -> None:
    trace, path = RECORDED / "mlp.json.gz", tmp_path / "runs.db"
    path.write_bytes(gzip.decompress((RECORDED / "mlp.db.gz").read_bytes()))
    with Store(str(path)) as store:
        mine = store.find_run()
        other = store.create_run("/other.py", [], Lane.DEEP, "")
        store.put_kernel(other, Kernel("triton_poi_fused_exp_0", "triton", "0/0", "s", ()))
        library = store.create_run("/library.py", [], Lane.DEEP, "")
        store.put_kernel(library, Kernel("extern_kernels.qr", "extern", "0/0", "s", ()))
        assert opened(str(trace), store, None).run == mine
        assert opened(str(trace), store, other).run == other, "the one that is named"
        store.delete(mine)
        found = opened(str(trace), store, None)
        assert found.run == "" and found.kernels and "No run in" in found.warnings[0]
        function = event("train.py(5): main", 0, 10, "python_function")
        script = store.create_run("/home/me/train.py", [], Lane.FAST, "")
        assert opened(written(tmp_path, [function, *a_step()]), store, None).run == script


def test_kernels_that_nobody_can_be_named_for_own_nothing(tmp_path: Path) -> None:
    """Without its run, most of a recording without stacks has no owner."""
    whole, found = recorded("inference", tmp_path), opened(str(RECORDED / "inference.json.gz"), None, None)
    assert found.device_seconds == pytest.approx(whole.device_seconds)
    assert whole.owned_device_seconds > 0 and found.owned_device_seconds == 0
    assert found.owned_seconds < 0.5 * found.step_seconds < whole.owned_seconds


def test_kernels_without_a_line_are_on_the_line_that_calls_pytorchs_own_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, trace, calls_of = tmp_path / "runs.db", RECORDED / "mlp.json.gz", Joined.calls_of
    path.write_bytes(gzip.decompress((RECORDED / "mlp.db.gz").read_bytes()))

    def without_lines(self: Joined, segments: Any) -> dict[int, Any]:
        return {key: replace(call, origins=()) for key, call in calls_of(self, segments).items()}

    monkeypatch.setattr(Joined, "calls_of", without_lines)
    facts = {"function": "Sequential", "file": "/w/train.py", "line": 9, "plain_seconds": 2e-3}
    with Store(str(path)) as store:
        report = store.report(store.find_run())
        joined, steps = Joined(store, report, None), timeline(read_events(str(trace)))
        own, foreign = (
            profile_of(steps, joined, report, [program_of(facts | {"is_foreign": one})]) for one in (False, True)
        )
    assert own.owned_device_seconds == 0 and own.lines == ()
    assert foreign.owned_device_seconds == pytest.approx(foreign.device_seconds)
    assert [(one.file, one.line) for one in foreign.lines] == [("/w/train.py", 9)]
    assert {one.where for one in foreign.gaps} == {"/w/train.py:9"}


def stored_calls(path: Path, run: str, stage: str) -> list[dict[str, Any]]:
    with Store(str(path)) as store:
        found: list[dict[str, Any]] = store.stage_data(run, stage)["calls"]
        return found


def test_kernels_of_one_library_call_belong_together() -> None:
    product, attention = "sm80_xmma_gemm_f32f32_tn", "fmha_cutlassB_f32_aligned_64x64"
    adding, other = "void cublasLt::splitKreduce_kernel<32, 16>", "void at::native::reduce_kernel<512>"
    assert grouped([product, product, adding], ["product", "product"]) == [[0], [1, 2]]
    assert grouped([product, other, other, attention], ["product", "attention"]) == [[0], [1, 2, 3]]
    assert grouped([attention, attention, product], ["attention", "product"]) == [[0, 1], [2]]
    assert grouped([product, product], ["product"]) == [], "which one it is cannot be known"
    assert grouped([other], ["product"]) == grouped([], ["product"]) == []
    assert [call_family(one) for one in ("addmm", "_scaled_dot_product_flash_attention", "convolution", "sort")] == [
        "product", "attention", "convolution", "",
    ]  # fmt: skip


# --- a CPU, by hand ---------------------------------------------------------------------------------------------------


def a_step() -> list[dict[str, Any]]:
    return [
        event("irscope::step:0", 0, 100, "user_annotation"),
        event("TorchDynamo Cache Lookup", 5, 5),
        event("Torch-Compiled Region: 0/0", 10, 80),
        event("## Call CompiledFxGraph f1 ##", 20, 40),
        event("aten::addmm", 25, 10),
        event("aten::copy_", 27, 2),
        event("graph_3_cpp_fused_relu_0", 40, 15),
        event("aten::sort", 70, 8),
    ]


def test_each_microsecond_has_one_owner(tmp_path: Path) -> None:
    found = timeline(read_events(written(tmp_path, a_step())))
    seconds: dict[Kind, float] = {}
    for one in found.segments:
        seconds[one.kind] = seconds.get(one.kind, 0) + one.seconds * 1e6
    assert {kind: round(each, 3) for kind, each in seconds.items()} == {
        Kind.OUTSIDE: 15, Kind.GUARDS: 5, Kind.PYTHON: 32, Kind.WRAPPER: 15, Kind.KERNEL: 25, Kind.EAGER: 8,
    }  # fmt: skip
    profile = profile_of(found)
    whole = sum(one.seconds for one in profile.kernels) + sum(one.seconds for one in profile.gaps)
    assert whole == pytest.approx(profile.step_seconds) == pytest.approx(100e-6)
    assert [(one.name, round(one.seconds * 1e6)) for one in profile.kernels] == [("cpp_fused_relu_0", 15), ("aten::addmm", 10)]  # fmt: skip


def test_what_other_threads_do_beside_a_step_is_not_counted_twice(tmp_path: Path) -> None:
    beside = [event("aten::mm", 12, 30, tid=2), event("aten::mm", 92, 5, tid=2), event("aten::mm", 98, 50, tid=2)]
    found = profile_of(timeline(read_events(written(tmp_path, a_step() + beside))))
    assert found.step_seconds == pytest.approx(100e-6)
    seconds = [one.seconds for one in found.kernels] + [one.seconds for one in found.gaps]
    assert sum(seconds) == pytest.approx(100e-6)
    assert ("eager operator", "aten::mm") in {(one.kind, one.where) for one in found.gaps}, "in a gap of the step"


# --- from elsewhere ---------------------------------------------------------------------------------------------------


def test_a_trace_is_read_block_by_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kineto, "_BLOCK", 7)
    path = written(tmp_path, [*a_step(), {"ph": "M"}, 5, "text", None], '"a": [1, {"b": "}]"}], ')
    packed = tmp_path / "trace.json.gz"
    packed.write_bytes(gzip.compress(Path(path).read_bytes()))
    names = [one["name"] for one in a_step()]
    assert [one.name for one in read_events(path)] == [one.name for one in read_events(str(packed))] == names
    bare = tmp_path / "bare.json"
    bare.write_text(json.dumps(a_step()))
    assert [one.name for one in read_events(str(bare))] == names


def damaged() -> Iterator[tuple[str, bytes]]:
    good = json.dumps({"traceEvents": a_step()}).encode()
    yield "empty", b""
    yield "another file", b'{"runs": []}'
    yield "cut off", good[:-40]
    yield "cut off, packed", gzip.compress(good)[:-20]
    yield "not packed", b"\x1f\x8b" + b"nothing"
    yield "not UTF-8", good.replace(b"relu", b"re\xff\xfe")
    yield "too deep", b'{"traceEvents": [' + b"[" * 100_000
    yield "too long", b'{"traceEvents": ["' + b"x" * 3_000_000
    yield "a number that is too long", b'{"traceEvents": [' + b"1" * 10_000 + b"]}"


@pytest.mark.parametrize(("name", "content"), [pytest.param(*each, id=each[0]) for each in damaged()])
def test_a_damaged_trace_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, content: bytes
) -> None:
    monkeypatch.setattr(kineto, "_BLOCK", 1 << 16)
    path = tmp_path / "trace.json"
    path.write_bytes(content)
    with pytest.raises(TraceError):
        list(read_events(str(path)))
    assert main(["open", str(path)]) == 3
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.startswith("irscope: ") and printed.err.count("\n") == 1


def test_numbers_that_are_none_are_left_out(tmp_path: Path) -> None:
    odd: list[dict[str, Any]] = [
        event("nan", float("nan"), 1), event("inf", 0, float("inf")), event("back", 0, -5),
        {**event("text", 0, 1), "ts": "5"}, {**event("huge", 0, 1), "ts": 10**400}, event("long", 1e308, 1),
        event("longer", 0, 1e308), event("true", 0, True), {**event("true", 0, 1), "ts": True},
        {**event("args", 0, 1), "args": [1]},
    ]  # fmt: skip
    assert [one.name for one in read_events(written(tmp_path, odd))] == ["args"]


def test_too_many_events_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kineto, "MOST_EVENTS", 3)
    with pytest.raises(TraceError, match="more than 3 events"):
        list(read_events(written(tmp_path, a_step())))


def test_spans_may_be_nested_as_deep_as_they_like(tmp_path: Path) -> None:
    deep = [event(f"aten::op{n}", n, 20_000 - 2 * n, "user_annotation") for n in range(9000)]
    assert timeline(read_events(written(tmp_path, deep))).segments


def test_names_do_not_steer_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events = [event("aten::\x1b[31mred\u202e", 0, 10), event("\x1b]0;title\x07", 20, 5, "user_annotation")]
    events += [event("## Call CompiledFxGraph f ##", 30, 10), event("aten::\x1b[31mkernel", 31, 5)]
    assert main(["open", written(tmp_path, events)]) == 0
    printed = capsys.readouterr().out
    assert "red" in printed and "kernel " in printed and not set("\x1b\x07\u202e") & set(printed)


def test_open_prints_what_json_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, a_step())
    assert main(["open", path, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["steps"] == 1 and told["lines"] == [] and told["run"] == ""
    assert {"device_seconds", "step_seconds", "owned_seconds", "kernels", "gaps", "cuda_graphs"} <= set(told)
    assert main(["open", path]) == 0
    assert "cpp_fused_relu_0" in capsys.readouterr().out


def test_a_profile_stays_with_its_run(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    path.write_bytes(gzip.decompress((RECORDED / "inference.db.gz").read_bytes()))
    with Store(str(path)) as store:
        run = store.find_run()
        assert store.profile(run) is None
        store.put_profile(run, {"steps": 3})
        store.tidy(run)
        assert store.profile(run) == {"steps": 3}


# --- without the profiler ---------------------------------------------------------------------------------------------


def test_what_the_profiler_costs_is_taken_out_where_it_wrote_its_spans(tmp_path: Path) -> None:
    calls = [MeasuredProgram("f", "f.py", 3, None, 80e-6, False)]
    found = profile_of(timeline(read_events(written(tmp_path, a_step()))), programs=calls)
    assert found.step_seconds == pytest.approx(80e-6) and found.profiled_seconds == pytest.approx(100e-6)
    whole = sum(one.seconds for one in found.kernels) + sum(one.seconds for one in found.gaps)
    assert whole == pytest.approx(80e-6)
    in_trace = {one.name: one.seconds for one in profile_of(timeline(read_events(written(tmp_path, a_step())))).kernels}
    now = {one.name: one.seconds for one in found.kernels}
    assert now["cpp_fused_relu_0"] == pytest.approx(in_trace["cpp_fused_relu_0"], rel=0.02), "it has no span inside"
    assert 0.5 * in_trace["aten::addmm"] < now["aten::addmm"] < 0.75 * in_trace["aten::addmm"], "it has a copy inside"


def test_of_many_profiled_steps_the_fastest_count(tmp_path: Path) -> None:
    slow = [{**one, "ts": 2 * one["ts"] + 1000, "dur": 2 * one["dur"]} for one in a_step()]
    path = written(tmp_path, [*slow, *a_step(), event("cudaGraphLaunch", 1080, 1, "cuda_runtime")])
    found = timeline(read_events(path), fastest=1)
    assert [round(seconds * 1e6) for _, seconds in found.steps] == [100] and found.graphs_replayed == 0
    assert len(timeline(read_events(path)).steps) == 2


def measured_run(seconds: list[float], lines: dict[int, float]) -> Profile:
    program = MeasuredProgram("f", "f.py", 1, None, sorted(seconds)[len(seconds) // 4], False, samples=tuple(seconds))
    rows = tuple(MeasuredLine("f.py", line, each, 0.0, None, 1.0, ("k",)) for line, each in lines.items())
    return Profile("r", 20, 0.0, sorted(seconds)[len(seconds) // 4], 0.0, rows, (), (), CudaGraphs(0, 0), (program,))


def test_a_difference_is_claimed_only_above_the_noise() -> None:
    def noisy(base: float) -> list[float]:
        return [base * (1 + 0.01 * (n % 7)) for n in range(60)]

    before, after = measured_run(noisy(1e-3), {5: 6e-4, 7: 2e-4}), measured_run(noisy(0.8e-3), {6: 4e-4, 8: 2.01e-4})
    moved = Moved({"f.py": "a\nb\nc\nd\ne\nf\ng"}, {"f.py": "new\na\nb\nc\nd\ne\nf\ng"})
    found = compared(before, after, moved)
    assert found.is_significant and found.chance is not None and found.chance < 0.01
    assert "20 % faster" in found.words
    assert [(one.line, one.before, one.after) for one in found.lines] == [(6, 6e-4, 4e-4)], "line 5 moved down"
    assert not compared(before, measured_run(noisy(0.99e-3), {}), moved).is_significant, "1 % is not more than noise"
    mixed = [*noisy(0.7e-3)[:30], *noisy(1.3e-3)[:30]]
    assert not compared(before, measured_run(mixed, {}), moved).is_significant, "the groups overlap"
    few = compared(before, measured_run([1e-4] * 5, {}), moved)
    assert few.chance is None and not few.is_significant and "too few" in few.words and few.lines == ()


def test_what_a_process_says_of_its_cuda_graphs_is_not_trusted() -> None:
    facts = {
        "recordings": 2, "again": [{"compile": "0/0", "function": "f", "why": "moved", "count": 1}],
        "pools": [{"pool": "0.1", "bytes": 5, "used_bytes": 3}],
    }  # fmt: skip
    found = with_facts(CudaGraphs(0, 1), facts)
    assert (found.recordings, found.replayed, found.again[0].why, found.pools[0].bytes) == (2, 1, "moved", 5)
    wrong: Any
    for wrong in (None, [], {}, {**facts, "again": 5}, {**facts, "pools": [{"pool": 1}]}, {**facts, "recordings": "x"}):
        assert with_facts(CudaGraphs(0, 1), wrong) == CudaGraphs(0, 1)


def test_messages_of_cuda_graphs_are_counted_with_their_reasons() -> None:
    watch = GraphWatch()
    texts = ["[0/0] Recording function=f, mode=INFERENCE, cuda_graph_id=0, inputs: x", "[0/0] Running warmup"]
    for mode in (", mode=INFERENCE", ""):  # torch 2.13 names it, 2.11 does not
        texts += [f"[0/0] Re-recording function=f{mode}, reason=static input data pointer changed.\ninput name: x"]
    for text in texts:
        watch.handle(logging.LogRecord("l", logging.DEBUG, "p", 1, "%s", (text,), None))
    facts = watch.facts(None)
    assert facts["recordings"] == 1 and facts["pools"] == []
    assert facts["again"] == [
        {"compile": "0/0", "function": "f", "why": "static input data pointer changed.\ninput name: x", "count": 2}
    ]


def test_when_compiling_is_paid_back() -> None:
    program = MeasuredProgram("f", "f.py", 1, None, 1e-3, False, "", (), 3e-3, 10.0)
    assert program.paid_back_calls == 5000
    assert replace(program, eager_seconds=0.9e-3).paid_back_calls is None
    assert replace(program, eager_seconds=None).paid_back_calls is None
