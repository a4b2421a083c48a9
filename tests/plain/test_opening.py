"""Opening traces from elsewhere: what is found in a recorded one, and what becomes of damaged and hostile ones.

`traces/trace.log.gz` was recorded from `traces/project/steps.py`, as /home/user/project/steps.py, with torch 2.13 on a CPU.
Records that nobody reads were taken out of it.  The others (`trace-2.11.log.gz`) are of the same script with other versions.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from irscope.cli.main import main
from irscope.opening import records, trace_run
from irscope.opening.logs import is_trace, open_log
from irscope.opening.paths import Paths, Roots
from irscope.opening.trace_run import TraceSpec, open_trace
from irscope.opening.warnings import TraceError, Warnings
from irscope.protocol import Lane, OutcomeKind, Report
from irscope.store.file import DamagedStoreError
from irscope.store.store import Store
from irscope.vocabulary.bounds import MOST_SECONDS

TRACES = Path(__file__).parent / "traces"
LOG = gzip.decompress((TRACES / "trace.log.gz").read_bytes())
NAME = "dedicated_log_torch_trace_abc.log"
LIVE = {
    ("graph-break", "GB0059", 6, 6),
    ("recompilation", "recompile-size", 11, 1),
    ("recompilation", "recompile-size", 5, 1),
    ("recompilation", "recompile-size", 7, 1),
    ("recompilation", "recompile-requires-grad", 11, 1),
    ("recompilation", "recompile-requires-grad", 5, 1),
    ("recompilation", "recompile-requires-grad", 7, 1),
    ("compile-error", "GB0059", 18, 1),
}
"""What `irscope run` finds in the script: kind, code, line and count."""

Open = Callable[..., Report]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(str(tmp_path / "runs.db")) as opened:
        yield opened


@pytest.fixture
def opened(store: Store, tmp_path: Path) -> Open:
    """Opens what is in a log, or what is at a path."""

    def open_it(given: bytes | Path = LOG, strict: bool = False, root: Path = TRACES, name: str = NAME) -> Report:
        path = given if isinstance(given, Path) else tmp_path / name
        if isinstance(given, bytes):
            path.write_bytes(given)
        return store.report(open_trace(TraceSpec(str(path), Roots(str(root)), strict=strict), store))

    return open_it


def found(report: Report) -> set[tuple[str, str, int, int]]:
    return {(one.kind, one.code, one.range.start.line, one.count) for one in report.findings}


def gaps(report: Report) -> str:
    return "\n".join(f"{gap.what}: {gap.why}" for gap in report.capture_gaps)


def record(metadata: str, payload: bytes | None = None) -> bytes:
    head = f"V1125 05:58:07.868000 11633 torch/_dynamo/x.py:1] {metadata}"
    if payload is None:
        return head.encode() + b"\n"
    told = f', "has_payload": "{hashlib.md5(payload).hexdigest()}"}}'
    return (head[:-1] + told).encode() + b"\n" + b"".join(b"\t" + line + b"\n" for line in payload.split(b"\n"))


# --- a recorded one ---------------------------------------------------------------------------------------------------


def test_an_opened_trace_has_the_findings_of_the_run(opened: Open) -> None:
    report = opened()
    assert found(report) == LIVE
    script = str(TRACES / "project" / "steps.py")
    assert report.script == script
    assert {finding.file for finding in report.findings} == {script}
    assert report.torch == "2.13.0+cpu"
    assert "part" not in gaps(report).split(":", maxsplit=1)[0]


@pytest.mark.parametrize(("version", "told"), [("2.9", "unknown"), ("2.11", "unknown"), ("2.15", "2.15.0+cu132")])
def test_traces_of_other_versions_have_the_findings_of_their_runs(version: str, told: str, opened: Open) -> None:
    """`irscope run` watched while PyTorch wrote these, and found the same as with 2.13.  Before it no version is told."""
    report = opened(gzip.decompress((TRACES / f"trace-{version}.log.gz").read_bytes()), strict=True)
    assert (found(report), report.torch) == (LIVE, told)
    assert {stage.name for stage in opened().compiles[0].stages} <= {stage.name for stage in report.compiles[0].stages}
    assert [one.graph_ops for one in report.compiles] == [one.graph_ops for one in opened().compiles]


def test_an_opened_trace_has_stages_and_kernels_with_the_users_lines(opened: Open, store: Store) -> None:
    report = opened()
    first = report.compiles[0]
    names = {stage.name for stage in first.stages}
    assert {
        "dynamo-graph",
        "guards",
        "forward-graph",
        "backward-graph",
        "post-grad-graph",
        "output-code",
        "kernel",
    } <= names
    assert "phases" in {stage.name for stage in report.compiles[-1].stages}
    assert (first.function, first.line, first.graph_ops) == ("step", 10, 2)
    kernel = next(one for one in report.kernels if one.name == "cpp_fused_mul_sin_0")
    assert {(Path(origin.file).name, origin.line) for origin in kernel.origins} == {("steps.py", 12)}
    graph = store.stage_text(report.run, "0/0/dynamo-graph")
    assert "torch.sin" in graph or ".sin()" in graph
    assert "/home/user" not in graph, "paths in texts are those of the workspace"


def test_the_parts_that_ddp_cut_are_a_stage(opened: Open, store: Store) -> None:
    of_ddp = '{"optimize_ddp_split_graph": {}, "frame_id": 0, "frame_compile_id": 0, "attempt": 0}'
    split = b"class GraphModule(torch.nn.Module):\n    def forward(self):\n        submod_0 = self.submod_0()\n"
    report = opened(LOG + record(of_ddp, split))
    (stage,) = [stage for stage in report.compiles[0].stages if stage.name == "bucket-splits"]
    assert store.stage_text(report.run, stage.id).encode() == split


def packed(kind: str, folder: Path) -> Path:
    if kind == "folder":
        path = folder / "trace"
        path.mkdir()
        (path / NAME).write_bytes(LOG)
    elif kind == "gz":
        path = folder / f"{NAME}.gz"
        path.write_bytes(gzip.compress(LOG))
    elif kind == "zst":
        path = folder / f"{NAME}.zst"
        path.write_bytes(pytest.importorskip("zstandard").compress(LOG))
    else:
        path = folder / "trace.tar.gz"
        with tarfile.open(path, "w:gz") as archive:
            for name, data in (("../../" + NAME, LOG), ("notes.txt", b"x")):
                member = tarfile.TarInfo(name)
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
    return path


@pytest.mark.parametrize("kind", ["folder", "gz", "zst", "tar.gz"])
def test_a_trace_may_be_in_a_folder_or_packed(kind: str, opened: Open, tmp_path: Path) -> None:
    path = packed(kind, tmp_path)
    assert is_trace(str(path))
    assert found(opened(path)) == LIVE
    assert not (tmp_path.parent / NAME).exists(), "nothing is unpacked"


def test_raw_jsonl_of_tlparse_is_a_trace(opened: Open, tmp_path: Path) -> None:
    """As tlparse 0.4.3 writes it: interned strings first, payloads in files, no timed events."""
    (tmp_path / "payloads").mkdir()
    strings, lines = [], []
    path = tmp_path / NAME
    path.write_bytes(LOG)
    with open_log(str(path), "", Warnings()) as log:
        for number, one in enumerate(records.read_records(log, Warnings())):
            if "str" in one.metadata:
                strings.append(one.metadata["str"][0])
            elif "chromium_event" not in one.metadata:
                if one.payload:
                    (tmp_path / "payloads" / f"{number}.txt").write_text(one.payload, encoding="utf-8")
                    one.metadata["payload_filename"] = f"payloads/{number}.txt"
                lines.append(
                    json.dumps({**one.metadata, "thread": 1, "pathname": " torch/_dynamo/x.py"}, sort_keys=True)
                )
    raw = tmp_path / "raw.jsonl"
    raw.write_text("\n".join([json.dumps({"string_table": strings}), *lines]), encoding="utf-8")
    report = opened(raw)
    assert found(report) == LIVE


# --- paths ------------------------------------------------------------------------------------------------------------


def test_sources_are_found_by_the_end_of_their_path_or_as_told(tmp_path: Path) -> None:
    for name in ("a/model.py", "b/model.py", "b/only.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x = 1\n")
    paths = Paths(Roots(str(tmp_path), replaced=(("/cluster/", str(tmp_path) + os.sep),)))
    assert paths.local("/home/u/b/model.py") == str(tmp_path / "b" / "model.py")
    assert paths.local("/home/u/only.py") == str(tmp_path / "b" / "only.py")
    assert paths.local("/home/u/c/model.py") == "/home/u/c/model.py"
    assert paths.ambiguous.keys() == {"/home/u/c/model.py"}
    assert paths.local("/cluster/a/model.py") == str(tmp_path / "a" / "model.py")
    assert paths.in_text('  File "/home/u/only.py", line 3') == f'  File "{tmp_path}/b/only.py", line 3'


@pytest.mark.parametrize("path", ["/etc/passwd", "/home/u/../../etc/x.py", "../x.py", "x\0.py", "/proc/self/environ"])
def test_other_paths_of_a_trace_are_not_read(path: str, tmp_path: Path) -> None:
    assert Paths(Roots(str(tmp_path))).local(path).startswith("<")


# --- damaged and hostile ----------------------------------------------------------------------------------------------


def test_a_trace_that_is_cut_off_opens(store: Store, tmp_path: Path) -> None:
    """At each boundary of 1 KB of its last 64 KB the rest is read: no record is lost that ended before."""
    path, whole = tmp_path / NAME, len(LOG)
    counts = []
    for cut in range(1, 65):
        path.write_bytes(LOG[: whole - 1024 * cut])
        warnings = Warnings()
        with open_log(str(path), "", warnings) as log:
            counts.append(sum(1 for _ in records.read_records(log, warnings)))
        ended = LOG[: whole - 1024 * cut].count(b"\nV1125")
        assert counts[-1] in (ended, ended + 1)
        assert warnings.total <= 1
    for cut in (1, 17, 40, 64):
        path.write_bytes(LOG[: whole - 1024 * cut])
        report = store.report(open_trace(TraceSpec(str(path), Roots(str(TRACES))), store))
        assert len(report.compiles) >= 10


def test_what_is_damaged_is_counted_and_the_rest_is_read(opened: Open) -> None:
    deep = record('{"x": ' + "[" * 100_000 + "]" * 100_000 + "}")
    bad = [
        b"V1125 05:58:07.868000 1 torch/x.py:1] {not json}\n",
        b"noise from another process\n",
        deep,
        record('{"dynamo_start": {}, "frame_id": "../x", "frame_compile_id": 0}'),
        record('{"dynamo_start": {}, "frame_id": 1e999, "frame_compile_id": 0}'),
        record('{"artifact": {"name": "x"}, "has_payload": "00"}') + b"\tother\n",
        record('{"dynamo_start": {"stack": 3}, "frame_id": 90, "frame_compile_id": 0, "attempt": 0}'),
        record('{"dynamo_start": {"stack": [{"line": "a", "filename": [1]}]}, "frame_id": 91, "frame_compile_id": 0}'),
        record('{"compilation_metrics": {"graph_op_count": "x"}, "frame_id": 91, "frame_compile_id": 0}'),
        record('{"artifact": {"name": "fx_graph_cache_miss"}, "frame_id": 91, "frame_compile_id": 0}', b"[[[["),
        b"\xff\xfe\x00\n",
    ]
    report = opened(LOG + b"".join(bad))
    told = gaps(report)
    assert found(report) >= LIVE
    for what in ("cannot be read", "not of PyTorch's trace", "nested too deep", "not what PyTorch writes", "checksum"):
        assert what in told
    for one in bad[:4]:
        with pytest.raises(TraceError):
            opened(LOG + one, strict=True)


def test_strict_leaves_nothing_in_the_store(opened: Open, store: Store) -> None:
    with pytest.raises(TraceError, match="not of PyTorch's trace"):
        opened(LOG + b"noise\n", strict=True)
    assert store.runs() == []
    assert found(opened(LOG, strict=True)) == LIVE


def test_a_record_that_begins_within_a_line_is_read(opened: Open) -> None:
    at = LOG.index(b"\nV1125", LOG.index(b'{"str"'))
    report = opened(LOG[:at] + b"printed by another" + LOG[at + 1 :])
    assert "a line begins within another" in gaps(report)
    assert found(report) == LIVE


def test_long_lines_are_skipped(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_LONGEST_LINE", 1 << 20)
    report = opened(LOG + record('{"x": "' + "a" * (5 << 20) + '"}') + record('{"y": {}}'))
    assert "a line is too long" in gaps(report)
    assert found(report) == LIVE


def test_a_bomb_is_refused(opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("irscope.opening.logs._FREE", 1 << 20)
    bomb = tmp_path / "bomb.log.gz"
    bomb.write_bytes(gzip.compress(LOG[:100] + b"\0" * (64 << 20)))
    with pytest.raises(TraceError, match="packed too tightly"):
        opened(bomb)


def test_what_is_before_a_bomb_is_read(opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("irscope.opening.logs._FREE", 1 << 20)
    bomb = tmp_path / "bomb.log.gz"
    bomb.write_bytes(gzip.compress(LOG + b"\0" * (64 << 20)))
    report = opened(bomb)
    assert "packed too tightly" in gaps(report)
    assert found(report) == LIVE
    with pytest.raises(TraceError, match=r"too long|packed too tightly"):
        opened(bomb, strict=True)


@pytest.mark.parametrize("keep", [10, 5_000, 60_000])
def test_a_packed_trace_that_is_cut_off_is_read_or_refused(keep: int, opened: Open, tmp_path: Path) -> None:
    path = tmp_path / "cut.log.gz"
    path.write_bytes((TRACES / "trace.log.gz").read_bytes()[:keep])
    if keep < 1000:
        with pytest.raises(TraceError):
            opened(path)
    else:
        assert "cannot be unpacked" in gaps(opened(path))


def test_payloads_of_raw_jsonl_stay_beside_it(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("SECRET = 1")
    folder = tmp_path / "out"
    folder.mkdir()
    lines = [
        {"string_table": ["/home/user/project/steps.py"]},
        {
            "dynamo_start": {"stack": [{"filename": 0, "line": 10, "name": "step"}]},
            "frame_id": 0,
            "frame_compile_id": 0,
        },
        {"dynamo_output_graph": {}, "frame_id": 0, "frame_compile_id": 0, "payload_filename": "../secret.txt"},
        {
            "dynamo_output_graph": {},
            "frame_id": 0,
            "frame_compile_id": 0,
            "payload_filename": str(tmp_path / "secret.txt"),
        },
    ]
    (folder / "raw.jsonl").write_text("\n".join(map(json.dumps, lines)))
    report = opened(folder / "raw.jsonl")
    assert "2 parts of the trace: a payload is not beside the log" in gaps(report)


def test_the_command_says_what_is_not_a_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    assert main(["open", str(tmp_path / "empty"), "--store", str(tmp_path / "r.db")]) == 3
    assert "has no log of PyTorch's structured trace" in capsys.readouterr().err
    assert main(["open", str(tmp_path / "gone"), "--store", str(tmp_path / "r.db")]) == 3


def test_the_command_prints_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["open", str(TRACES / "trace.log.gz"), "--source-root", str(TRACES), "--store", str(tmp_path / "r.db")]
    assert main([*arguments, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert {(one["kind"], one["range"]["start"]["line"]) for one in report["findings"]} == {
        (k, n) for k, _, n, _ in LIVE
    }


# --- numbers and bytes that nobody expects ----------------------------------------------------------------------------

ODD = {
    "2**64": "18446744073709551616", "-2**70": "-1180591620717411303424", "1e308": "1e308", "1e400": "1e400", "NaN": "NaN",
    "-Infinity": "-Infinity", "digits": "1" * 5000, "true": "true", "text": '"many"', "negative": "-7", "list": "[]",
}  # fmt: skip


def odd_record(event: str, facts: object, odd: str = "", payload: str | None = None) -> bytes:
    """A record of the first compile, with such a number in the place of ``@``."""
    metadata = json.dumps({event: facts, "frame_id": 0, "frame_compile_id": 0, "attempt": 0}).replace('"@"', odd)
    return record(metadata, None if payload is None else payload.encode())


@pytest.mark.parametrize("odd", [pytest.param(text, id=name) for name, text in ODD.items()])
@pytest.mark.parametrize("key", ["line", "co_firstlineno", "graph_op_count", "entire_frame_compile_time_s"])
def test_a_number_that_cannot_be_kept_is_bounded_and_counted(
    key: str, odd: str, opened: Open, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    metrics: dict[str, object] = {"co_firstlineno": 4, "graph_op_count": 2, "entire_frame_compile_time_s": 0.5}
    metrics = metrics if key == "line" else {**metrics, key: "@"}
    stack = [{"line": "@" if key == "line" else 4, "name": "f", "filename": "/a.py"}]
    report = opened(odd_record("dynamo_start", {"stack": stack}, odd) + odd_record("compilation_metrics", metrics, odd))
    assert report.outcome.kind is OutcomeKind.COMPLETED and len(report.compiles) == 1
    if odd == ODD["1e308"] and key == "entire_frame_compile_time_s":
        assert report.compiles[0].seconds == MOST_SECONDS
    assert "a number is out of bounds" in gaps(report)
    assert main(["show", report.run, "--store", store.path]) == main(["list", "--store", store.path]) == 0


@pytest.mark.parametrize("odd", ["1e308", "18446744073709551616", "NaN", "1e400"])
def test_a_number_in_a_payload_is_bounded_and_counted(odd: str, opened: Open) -> None:
    times = [
        odd_record("chromium_event", {}, "", f'{{"name": "dynamo", "ph": "{kind}", "ts": {when}, "pid": 1, "tid": 1}}')
        for kind, when in (("B", 5.0), ("E", odd))
    ]
    start = odd_record("dynamo_start", {"stack": [{"line": 4, "name": "f", "filename": "/a.py"}]})
    report = opened(start + b"".join(times))
    assert report.outcome.kind is OutcomeKind.COMPLETED
    assert "a payload has a number that is out of bounds" in gaps(report)


@pytest.mark.parametrize("error", [KeyboardInterrupt, OverflowError, DamagedStoreError])
def test_an_opening_that_fails_late_leaves_no_run(
    error: type[BaseException], opened: Open, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(trace_run, "add_missing_origins", fail)
    with pytest.raises(error):
        opened()
    assert store.runs() == []


def test_an_opening_that_was_killed_is_not_the_newest_run(opened: Open, store: Store) -> None:
    before = opened().run
    killed = store.create_run("/trace.log", (), Lane.DEEP, "", is_made=False)
    assert (store.find_run(), [one.run for one in store.runs()]) == (before, [before, killed])


@pytest.mark.parametrize("noise", [b"", bytes(range(20)), bytes(5000), b"\xff" * 300])
@pytest.mark.parametrize(
    "begin", [b"\x28\xb5\x2f\xfd", b"\x1f\x8b", b"\x1f\x8b\x08", b"PK\x03\x04", b"\0" * 257 + b"ustar"]
)
def test_noise_after_the_first_bytes_of_a_packed_file_is_a_sentence(
    begin: bytes, noise: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / NAME).write_bytes(begin + noise)
    assert main(["open", str(tmp_path / NAME), "--store", str(tmp_path / "runs.db")]) == 3
    assert "Set IRSCOPE_DEBUG" not in capsys.readouterr().err


def test_names_that_are_no_characters_are_written_out(tmp_path: Path, store: Store) -> None:
    path = tmp_path / os.fsdecode(b"rank_0_\xff.log")
    path.write_bytes(LOG)
    assert main(["open", str(path), "--store", store.path]) == 0
    assert store.how_run(store.find_run())[0]["target"].endswith("rank_0_\\udcff.log")
