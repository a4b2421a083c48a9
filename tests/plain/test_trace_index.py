"""The index of a big trace: what it finds, how it goes on, and one compile opened by it."""

from __future__ import annotations

import argparse
import gzip
import json
from pathlib import Path

import pytest
from irscope.cli.indexing import follow
from irscope.cli.main import main
from irscope.opening import index as indexing
from irscope.opening.index import TraceIndex

TRACE = Path(__file__).parent / "traces" / "trace.log.gz"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "trace.log"
    path.write_bytes(gzip.decompress(TRACE.read_bytes()))
    return path


def indexed(log: Path, folder: Path) -> tuple[list[str], indexing.Overview]:
    with TraceIndex(str(log), str(folder)) as index:
        return [one.id for one in index.update()], index.overview(1000)


def test_the_index_has_each_record_and_compile(log: Path, tmp_path: Path) -> None:
    lines = [line for line in log.read_bytes().split(b"\n") if line.startswith(b"V")]
    compiles, found = indexed(log, tmp_path / "index")
    assert found.records == len(lines) and found.damaged == 0 and found.size == log.stat().st_size
    assert len(compiles) == found.number == sum(b'{"compilation_metrics"' in line for line in lines) > 5
    assert found.breaks == sum(b'"dynamo_graph_break_reason"' in line for line in lines) > 0
    times = [one.seconds for one in found.compiles]
    assert times == sorted(times, reverse=True) and sum(times) == pytest.approx(found.seconds)
    assert indexed(log, tmp_path / "index") == ([], found), "it is made once"


@pytest.mark.parametrize("chunk", [100, 4096, 8 << 20])
def test_a_log_that_grows_has_the_same_index(
    chunk: int, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, growing = log.read_bytes(), tmp_path / "growing.log"
    whole, found = indexed(log, tmp_path / "index")
    monkeypatch.setattr(indexing, "_CHUNK", chunk)
    seen: list[str] = []
    for part in range(1, 8):
        growing.write_bytes(text[: len(text) * part // 7])
        compiles, last = indexed(growing, tmp_path / "index")
        seen += compiles
    assert seen == whole and (last.records, last.compiles) == (found.records, found.compiles)
    growing.write_bytes(text.replace(b"V11", b"V12")[:-1])
    assert indexed(growing, tmp_path / "index")[0] == whole, "another log in its place is read from its beginning"


def test_damaged_records_are_counted(log: Path, tmp_path: Path) -> None:
    text = log.read_bytes()
    at = text.index(b'{"compilation_metrics"')
    log.write_bytes(text[:at] + b'{"compilation_metrics": [[[' + text[at + 20 :] + b"\nV9999 nonsense\n")
    assert indexed(log, tmp_path / "index")[1].damaged == 1


def test_half_a_character_is_a_question_mark(log: Path, tmp_path: Path) -> None:
    log.write_bytes(log.read_bytes().replace(b'"co_name": "step"', rb'"co_name": "\ud800 \ud83d\ude00"'))
    _, found = indexed(log, tmp_path / "index")
    assert "? \U0001f600" in {one.function for one in found.compiles} and found.damaged == 0


def test_strings_that_a_log_repeats_are_read_once_for_a_compile(log: Path, tmp_path: Path) -> None:
    text = log.read_bytes()
    strings = [line for line in text.split(b"\n") if line.startswith(b"V") and b'{"str": ["' in line]
    first = strings[0].replace(b'{"str": ["', b'{"str": ["/changed')
    log.write_bytes(text + b"\n".join([first, *strings, *strings]) + b"\n")
    with TraceIndex(str(log), str(tmp_path / "index")) as index:
        compiles = index.update()
        with index.log_of(compiles[0].id) as found:
            read = [line for line in found.stream.read().split(b"\n") if b'{"str": ["' in line]
    assert len(strings) > 5 and read == [*strings, first, strings[0]], "each text once, and again after another one"


def test_one_compile_is_opened_alone(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = str(tmp_path / "runs.db")
    assert main(["open", str(log), "--store", store, "--json"]) == 0
    whole = json.loads(capsys.readouterr().out)
    id = whole["compiles"][-1]["id"]
    assert main(["open", str(log), "--store", store, "--json", "--compile", id]) == 0
    alone = json.loads(capsys.readouterr().out)
    (one,) = alone["compiles"]
    wanted = next(each for each in whole["compiles"] if each["id"] == id)
    assert (one["function"], one["file"], one["line"], one["graph_ops"]) == tuple(
        wanted[key] for key in ("function", "file", "line", "graph_ops")
    )
    assert {stage["name"] for stage in one["stages"]} == {stage["name"] for stage in wanted["stages"]}
    assert main(["open", str(log), "--store", store, "--compile", "99/9"]) == 3
    assert main(["open", str(log), "--store", store, "--overview"]) == 0
    assert "irscope open" in capsys.readouterr().out


def test_of_a_folder_its_log_is_indexed(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store, folder = str(tmp_path / "runs.db"), tmp_path / "logs"
    folder.mkdir()
    log.rename(folder / "a.log")
    (folder / "b.log").write_bytes(b"short")
    assert main(["open", str(folder), "--store", store, "--overview", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["path"] == str(folder / "a.log") and found["compiles"]
    assert main(["open", str(folder), "--store", store, "--json", "--compile", found["compiles"][0]["id"]]) == 0
    assert len(json.loads(capsys.readouterr().out)["compiles"]) == 1


def test_a_log_is_followed(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, growing = log.read_bytes(), tmp_path / "growing.log"
    parts = iter([len(text) // 2, len(text)])

    def grow() -> bool:
        end = next(parts, None)
        if end is not None:
            growing.write_bytes(text[:end])
        return end is not None

    growing.write_bytes(text[:5000])
    options = argparse.Namespace(trace=str(growing), json=True, log="")
    assert follow(options, str(tmp_path / "index"), grow) == 0
    printed = [json.loads(line)["id"] for line in capsys.readouterr().out.splitlines()]
    assert printed == indexed(log, tmp_path / "other")[0]


def test_what_is_not_a_log_is_refused(tmp_path: Path) -> None:
    packed = tmp_path / "trace.log.gz"
    packed.write_bytes(TRACE.read_bytes())
    assert main(["open", str(packed), "--overview", "--store", str(tmp_path / "runs.db")]) == 3
