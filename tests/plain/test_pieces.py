"""The pieces of a piecewise compilation in an opened trace: folded, and as a matrix of piece and size.

Records of vLLM have the form that it writes (`vllm_piecewise_compile_start`, a dump of each piece's graph); their contents are
made here.  Those of SGLang are recorded.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from irscope.cli.main import main
from irscope.comparing.piece_matrix import piece_matrix
from irscope.events.trace import Record
from irscope.opening.alike_graphs import alike
from irscope.opening.compiled_pieces import CompiledPieces
from irscope.store.store import Store

LAYER = """\
class GraphModule(torch.nn.Module):
    def forward(self, l_layers_{n}_weight: "f32[8, 8]", x_{n}: "f32[s72, 8]"):
        # File: model.py:{n}
        mm_{n}: "f32[s72, 8]" = torch.ops.aten.mm.default(x_{n}, l_layers_{n}_weight);  x_{n} = None
        return (mm_{n},)
"""
HEAD = LAYER.replace("mm.default", "addmm.default")


def record(seconds: int, metadata: dict[str, Any], payload: str) -> str:
    digest = hashlib.md5(payload.encode(), usedforsecurity=False).hexdigest()
    ids = {"frame_id": 0, "frame_compile_id": 0, "attempt": 0, "has_payload": digest}
    text = "\n".join(f"\t{line}" for line in payload.split("\n"))
    return f"V1125 07:00:{seconds:02}.000000 1 torch/x.py:1] {json.dumps({**metadata, **ids})}\n{text}\n"


def start(seconds: int, name: str, low: int, high: int) -> str:
    facts = {
        "piecewise_index": int(name[-1]), "submod_name": name, "total_piecewise_compiles": 3, "compile_range_start": low,
        "compile_range_end": high, "is_single_size": low == high, "is_cudagraph_capture_size": low == high,
    }  # fmt: skip
    metadata = {"artifact": {"name": "vllm_piecewise_compile_start", "encoding": "json"}}
    return record(seconds, metadata, json.dumps(facts))


def graph(seconds: int, name: str, text: str) -> str:
    return record(seconds, {"graph_dump": {"name": f"vllm_{name}"}}, text)


def cache(seconds: int, state: str) -> str:
    return record(seconds, {"artifact": {"name": f"fx_graph_cache_{state}", "encoding": "json"}}, "{}")


def test_pieces_are_folded_into_a_matrix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, store = tmp_path / "vllm.log", str(tmp_path / "runs.db")
    log.write_text(
        start(0, "submod_0", 1, 512) + graph(0, "submod_0", LAYER.replace("{n}", "0")) + cache(3, "miss")
        + start(4, "submod_1", 1, 512) + graph(4, "submod_1", LAYER.replace("{n}", "1")) + cache(7, "miss")
        + start(8, "submod_0", 8, 8) + cache(10, "hit") + start(10, "submod_1", 8, 8) + cache(12, "hit")
        + start(13, "submod_2", 8, 8) + graph(13, "submod_2", HEAD.replace("{n}", "2"))
        + record(14, {"artifact": {"name": "vllm_piecewise_compile_start", "encoding": "json"}}, "[1, {"),
        encoding="utf-8",
    )  # fmt: skip
    assert main(["open", str(log), "--store", store, "--json"]) == 0
    pieces = json.loads(capsys.readouterr().out)["pieces"]
    assert [(one["name"], one["like"], one["smallest"], one["largest"]) for one in pieces] == [
        ("submod_0", "submod_0", 1, 512), ("submod_1", "submod_0", 1, 512), ("submod_0", "submod_0", 8, 8),
        ("submod_1", "submod_0", 8, 8), ("submod_2", "submod_2", 8, 8),
    ]  # fmt: skip
    assert [(one["cache"], one["compiled"], one["cuda_graph"], one["seconds"]) for one in pieces] == [
        ("miss", False, False, 3), ("miss", False, False, 3), ("hit", True, True, 2), ("hit", True, True, 2),
        ("", False, True, 0),
    ]  # fmt: skip
    assert main(["open", str(log), "--store", store]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "piece 1–512 8" in lines and any(
        re.fullmatch(r"submod_0 and 1 alike miss 6(\.0)? s hit CG 4(\.0)? s", line) for line in lines
    )
    assert any(line.startswith("submod_2 – not compiled CG") for line in lines)
    page = tmp_path / "report.html"
    assert main(["report", "--store", store, "-o", str(page)]) == 0
    cells = "<td>submod_0 and 1 alike</td><td>miss 6.0 s</td><td>hit CG 4.0 s</td>"
    assert "Pieces by size" in page.read_text(encoding="utf-8") and cells in page.read_text(encoding="utf-8")
    with Store(store) as opened:
        found = piece_matrix(opened.report(opened.runs()[0].run).pieces, 1, 1)
    assert (found.sizes, [row.title for row in found.rows]) == (("1–512",), ["submod_0 and 1 alike"])
    assert (found.hidden_rows, found.hidden_sizes) == (1, 1)
    assert piece_matrix([], 1, 1).rows == ()


def test_graphs_that_differ_are_not_alike() -> None:
    assert alike(LAYER.replace("{n}", "0")) == alike(LAYER.replace("{n}", "17"))
    for before, after in (("8, 8]", "8, 16]"), ("f32", "f16"), ("mm.default", "bmm.default"), ("(mm_0,)", "(x_0,)")):
        text = LAYER.replace("{n}", "0")
        assert alike(text) != alike(text.replace(before, after)), before


TRACES = Path(__file__).parent / "traces"
"""Recorded with torch 2.13 on a CPU, without the records that do not matter here: ``sglang`` with the compilation package of
SGLang 0.5.23 and a model of five layers; ``piecewise`` with a backend that cuts at the attention, too, and compiles each
piece for sizes 8 and 4 when they first come, with a model of four layers."""


def pieces_of(trace: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[list[dict[str, Any]], list[str]]:
    """The pieces of the JSON report, and the lines of the matrix, with one space between columns."""
    log, store = str(TRACES / f"{trace}.log.gz"), str(folder / "runs.db")
    assert main(["open", log, "--store", store, "--json"]) == 0
    pieces = json.loads(capsys.readouterr().out)["pieces"]
    assert main(["open", log, "--store", store]) == 0
    lines = capsys.readouterr().out.splitlines()
    first = next(at for at, line in enumerate(lines) if line.startswith("Pieces by size"))
    return pieces, [" ".join(line.split()) for line in lines[first : lines.index("", first)]]


def test_pieces_of_sglang_are_known_from_the_order_of_records(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pieces, lines = pieces_of("sglang", tmp_path, capsys)
    assert [(one["name"], one["like"], one["cache"], one["size"]) for one in pieces] == [
        ("piece 0", "piece 0", "miss", "any size"),
        ("piece 1", "piece 1", "miss", "any size"),
        *[(f"piece {at}", "piece 1", "hit", "any size") for at in (2, 3, 4)],
        ("piece 5", "piece 5", "miss", "any size"),
    ]
    assert all((one["compiled"], one["cuda_graph"], one["compile"]) == (True, None, "0/0") for one in pieces)
    assert "which CUDA graphs are captured is not in the trace" in lines[0]
    assert lines[1] == "piece any size"
    assert [line.split(" miss")[0] for line in lines[2:]] == ["piece 0", "piece 1 and 3 alike", "piece 5"]
    assert lines[3] == "piece 1 and 3 alike miss/hit 35.8 s"


def test_sizes_that_come_later_belong_to_their_piece(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pieces, lines = pieces_of("piecewise", tmp_path, capsys)
    assert lines[1] == "piece any size 4 8"
    assert [re.sub(r"[\d.]+ (?:min|m?s)", "T", line).replace("T T", "T") for line in lines[2:]] == [
        "piece 0 miss T bypass T bypass T",
        "piece 1 and 2 alike miss/hit T bypass T bypass T",
        "piece 4 miss T bypass T bypass T",
    ]
    assert {(one["name"], one["size"]) for one in pieces} == {
        (f"piece {at}", size) for at in range(5) for size in ("any size", "8", "4")
    }
    assert {(one["size"], one["smallest"], one["largest"], one["compile"]) for one in pieces} == {
        ("any size", 0, None, "0/0"), ("8", 8, 8, ""), ("4", 4, 4, ""),
    }  # fmt: skip


def test_a_compile_of_one_graph_has_no_pieces(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["open", str(TRACES / "trace.log.gz"), "--store", str(tmp_path / "runs.db"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["pieces"] == []


def compiled(frame: str, text: str, state: str = "miss") -> list[Record]:
    """What PyTorch writes of one graph."""
    attempt = 0
    return [
        Record("before_pre_grad_graph", {}, frame, attempt, text), Record("aot_inference_graph", {}, frame, attempt, text),
        Record("inductor_output_code", {}, frame, attempt, ""), Record(f"fx_graph_cache_{state}", {}, frame, attempt, "{}"),
    ]  # fmt: skip


def ends(frame: str) -> Record:
    return Record("compilation_metrics", {}, frame, 0, "")


def folded(*records: Record) -> list[tuple[str, str, str, str]]:
    pieces = CompiledPieces()
    for second, record in enumerate(records, 1):
        pieces.take(record, float(second))
    return [(one.name, one.like, one.size, one.compile) for one in pieces.folded()]


def test_a_frame_that_is_compiled_again_for_another_size() -> None:
    of = [LAYER.replace("{n}", str(at)).replace("s72", "{size}") for at in (0, 1)]
    records = [
        record
        for count, size in enumerate(("16", "4", "s72"))
        for record in (*(each for text in of for each in compiled(f"0/{count}", text.format(size=size))), ends(f"0/{count}"))
    ]  # fmt: skip
    assert folded(*records) == [
        (f"piece {at}", "piece 0", size, f"0/{count}")
        for at in (0, 1)
        for count, size in enumerate(("16", "4", "any size"))
    ]


def test_other_operations_are_other_pieces_and_a_backward_is_none() -> None:
    layer, head = LAYER.replace("{n}", "0"), HEAD.replace("{n}", "1")
    static = layer.replace("s72", "16"), head.replace("s72", "16")
    later = Record("inductor_output_code", {}, "0/0", 0, "")  # a backward, which is compiled when it is called
    two = [*compiled("0/0", static[0]), *compiled("0/0", static[1]), ends("0/0"), later]
    assert folded(*two) == [("piece 0", "piece 0", "one size", "0/0"), ("piece 1", "piece 1", "one size", "0/0")]
    again = [*compiled("0/1", static[1]), *compiled("0/1", static[1]), ends("0/1")]
    assert [one[0] for one in folded(*two, *again)] == ["piece 0", "piece 1", "piece 2", "piece 3"]
    assert folded(*compiled("0/0", layer), *compiled("1/0", layer), ends("1/0"), ends("0/0")) == []
    assert folded(*compiled("0/0", layer), *compiled("0/0", head)) != [], "a log that is cut"


def test_pieces_of_a_compile_that_dynamo_began_again_do_not_count() -> None:
    first = [dataclasses.replace(one, attempt=0) for one in compiled("0/0", LAYER.replace("{n}", "0"))]
    second = [dataclasses.replace(one, attempt=1) for one in compiled("0/0", LAYER.replace("{n}", "0"))]
    assert folded(*first, *second, ends("0/0")) == []


def test_values_with_methods_and_without_numbers_are_alike() -> None:
    text = 'def forward(self, x: "f32[8]", n: "f32[8]"):\n    part = x.chunk(2);  x = None\n    return (part, n)\n'
    assert alike(text) == alike(text.replace("x", "x_2").replace("part", "part_7"))
    assert alike(text) != alike(text.replace("chunk", "split"))
    assert alike(text) != alike(text.replace("(part, n)", "(n, part)"))
