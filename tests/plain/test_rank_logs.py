"""The logs of many ranks: alike ones are told apart from others without being opened, and one of each is opened."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
from irscope.cli.main import main
from irscope.driver.opened_ranks import MOST_OPENED, chosen_of
from irscope.opening.rank_logs import RankLog, digested, has_ranks, rank_logs, rank_of
from irscope.opening.warnings import TraceError, Warnings
from irscope.vocabulary.units import spans
from irscope_server.agents.reports import summary

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from many_ranks import diverging, written

LOG = gzip.decompress((Path(__file__).parent / "traces" / "trace.log.gz").read_bytes())
RANKS, OTHER = 40, 23


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("traces")
    written(folder, [LOG], RANKS, OTHER)
    return folder


def opened(path: Path, store: Path, capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, object]:
    assert main(["open", str(path), "--store", str(store), "--json", *options]) == 0
    report: dict[str, object] = json.loads(capsys.readouterr().out)
    return report


def test_one_rank_of_each_group_is_opened(traces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = opened(traces, tmp_path / "runs.db", capsys)
    alike = [rank for rank in range(1, RANKS) if rank != OTHER]
    assert report["world"] == RANKS
    assert [(one["rank"], one["alike"]) for one in report["ranks"]] == [(0, alike), (OTHER, [])]  # type: ignore[attr-defined]
    found = report["findings"]
    divergences = [one for one in found if one["kind"] == "rank-divergence"]  # type: ignore[attr-defined]
    assert [(one["code"], one["ranks"]) for one in divergences] == [("rank-divergence-graph", [0, OTHER])]
    assert divergences[0]["range"]["start"]["line"] == 12
    rest = [one for one in found if one["kind"] != "rank-divergence"]  # type: ignore[attr-defined]
    assert rest and all(one["ranks"] == list(range(RANKS)) for one in rest)
    (gap,) = [one for one in report["capture_gaps"] if "not opened" in one["what"]]  # type: ignore[attr-defined]
    assert "38 ranks" in gap["what"]
    assert main(["show", "--store", str(tmp_path / "runs.db")]) == 0
    shown = capsys.readouterr().out
    assert "1-22, 24-39" in shown and "on ranks 0, 23" in shown
    assert main(["show", "--ranks", "--store", str(tmp_path / "runs.db")]) == 0
    first, *rest_of_it = capsys.readouterr().out.splitlines()
    assert "steps.py:12: rank-divergence rank-divergence-graph on ranks 0, 23: " in first, (
        "what tells them apart comes first"
    )
    assert any(line.startswith("23 of 40") for line in rest_of_it)
    assert main(["show", "--ranks", "--json", "--store", str(tmp_path / "runs.db")]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["world"], data["ranks"]) == (RANKS, report["ranks"]) and len(data["findings"]) == len(found)  # type: ignore[arg-type]
    told = summary(report).split("\n")
    assert [line.partition(": run ")[0] for line in told if line.startswith("rank ")] == ["rank 0", "rank 23"]
    assert any(line.endswith("0 collectives, alike: ranks 1-22, 24-39") for line in told)
    assert any(" rank-divergence rank-divergence-graph on ranks 0, 23: " in line for line in told)


def test_an_archive_of_ranks(traces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "traces.tar.gz"
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        for log in sorted(traces.iterdir()):
            if 20 <= (rank_of(log.name) or 0) < 30:
                archive.add(log, log.name)
    report = opened(path, tmp_path / "runs.db", capsys)
    ranks = [(one["rank"], len(one["alike"])) for one in report["ranks"]]  # type: ignore[attr-defined]
    assert ranks == [(20, 8), (OTHER, 0)]


def test_one_log_by_name_is_opened_alone(traces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = opened(traces, tmp_path / "runs.db", capsys, "--log", "rank_23")
    assert report["ranks"] == [] and report["world"] == 0


ALONE = """\
class GraphModule(torch.nn.Module):
    def forward(self, a: "f32[8, 8][8, 1]cpu"):
        sent: "f32[8, 8][8, 1]cpu" = torch.ops._c10d_functional.all_reduce.default(a, 'sum', '0')
        waited: "f32[8, 8][8, 1]cpu" = torch.ops._c10d_functional.wait_tensor.default(sent);  sent = None
        return (waited,)
"""


@pytest.mark.parametrize("rank", [3, None, True])
def test_the_log_of_one_rank_alone_has_what_it_communicates(
    rank: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "dedicated_log_torch_trace_rank_3_x.log"
    ids = {"frame_id": 0, "frame_compile_id": 0, "attempt": 0, **({} if rank is None else {"rank": rank})}
    payload = "\n".join(f"\t{line}" for line in ALONE.rstrip("\n").split("\n"))
    digest = hashlib.md5(ALONE.rstrip("\n").encode(), usedforsecurity=False).hexdigest()
    head = "V1125 07:00:00.000000 1 torch/x.py:1] "
    log.write_text(
        f"{head}{json.dumps({'dynamo_start': {'stack': []}, **ids})}\n"
        f"{head}{json.dumps({'aot_inference_graph': {}, **ids, 'has_payload': digest})}\n{payload}\n"
    )
    report = opened(log, tmp_path / "runs.db", capsys)
    found: Any = report["ranks"]
    assert report["world"] == 0, "how many ranks the job has is not known"
    if rank != 3:
        assert found == []
        return
    assert [(one["rank"], [each["sent_bytes"] for each in one["collectives"]]) for one in found] == [(3, [256])]
    assert main(["open", str(log), "--store", str(tmp_path / "runs.db")]) == 0
    shown = capsys.readouterr().out
    assert "What rank 3 communicates in one call of everything" in shown and "all_reduce (sum)" in shown
    assert "1 of 1 collective (256 B of 256 B) runs beside nothing" in shown


def test_a_damaged_rank_is_counted_and_the_others_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    written(folder, [LOG], 5, 3)
    logs = sorted(folder.iterdir())
    logs[1].write_bytes(b"nothing of a trace")
    logs[2].write_bytes(LOG[:-30000])
    logs[4].unlink()
    (folder / "dedicated_log_torch_trace_rank_6_x.log.gz").write_bytes(gzip.compress(LOG)[:-2000])
    report = opened(folder, tmp_path / "runs.db", capsys)
    gaps = "\n".join(f"{gap['what']}: {gap['why']}" for gap in report["capture_gaps"])  # type: ignore[attr-defined]
    assert "No log was found for ranks 1, 4, 5." in gaps and logs[1].name in gaps and "rank_6" in gaps
    ranks = {one["rank"] for one in report["ranks"]}  # type: ignore[attr-defined]
    assert ranks == {0, 2, 3, 6}, "a log that was cut off compiled something else"
    assert main(["open", str(folder), "--strict", "--store", str(tmp_path / "runs.db")]) == 3
    assert "cannot be read" in capsys.readouterr().err


def log_of(text: bytes, rank: int = 0) -> RankLog:
    return digested(RankLog(rank, f"rank_{rank}.log", len(text)), io.BytesIO(text))


def test_what_a_digest_leaves_out_and_what_it_sees() -> None:
    mine = log_of(LOG)
    assert mine.compiles == LOG.count(b'{"compilation_metrics"') > 5 and mine.damaged == 0
    same = LOG.replace(b" 24026 ", b" 7 ").replace(b"V1125 07", b"V1126 11")
    assert (log_of(same).exact, log_of(same).shape) == (mine.exact, mine.shape), "times and threads"
    assert log_of(diverging(LOG)).shape != mine.shape, "another operation"
    assert LOG.count(b" = sin * 1.5") > 0
    number = log_of(LOG.replace(b" = sin * 1.5", b" = sin * 37"))
    assert number.shape == mine.shape and number.exact != mine.exact, "another number in a graph"
    assert log_of(LOG.replace(b"f32[4, 3]", b"f32[5, 3]")).shape != mine.shape, "another shape"
    with pytest.raises(TraceError, match="no record"):
        log_of(b"V nothing\n" * 9)


def test_many_groups_are_bounded_and_numbers_are_one_group() -> None:
    logs = [RankLog(0, "0", 1, b"a", b"s"), *(RankLog(i, str(i), 1, b"%d" % i, b"s") for i in range(1, 50))]
    chosen, left = chosen_of(logs)
    assert [(one.log.rank, len(one.alike)) for one in chosen] == [(0, 0), (1, 48)] and left == []
    others = [RankLog(i, str(i), 1, b"x", b"%d" % i) for i in range(50)]
    chosen, left = chosen_of(others)
    assert len(chosen) == MOST_OPENED and len(left) == 50 - MOST_OPENED


def test_spans_of_numbers() -> None:
    assert spans([5, 1, 2, 3, 9, 8]) == "1-3, 5, 8, 9" and spans([]) == ""
    assert spans(range(0, 40, 2)) == "0, 2, 4, 6, 8, 10, 12, 14, …"


def test_names_that_are_not_of_ranks(tmp_path: Path) -> None:
    for name in ("rank_1.txt", "a.log", "rank_0.log"):
        (tmp_path / name).write_bytes(LOG)
    assert not has_ranks(str(tmp_path))
    (tmp_path / f"rank_{'9' * 40}.log").write_bytes(LOG)
    assert has_ranks(str(tmp_path))
    assert [log.rank for log in rank_logs(str(tmp_path), Warnings())] == [0, 999_999_999]
