"""The pieces of vLLM's piecewise compilation in an opened trace: folded, and as a matrix of piece and size.

The records have the form that vLLM writes (`vllm_piecewise_compile_start`, a dump of each piece's graph); their contents are
made here.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from irscope.cli.main import main
from irscope.opening.alike_graphs import alike

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


def test_graphs_that_differ_are_not_alike() -> None:
    assert alike(LAYER.replace("{n}", "0")) == alike(LAYER.replace("{n}", "17"))
    for before, after in (("8, 8]", "8, 16]"), ("f32", "f16"), ("mm.default", "bmm.default"), ("(mm_0,)", "(x_0,)")):
        text = LAYER.replace("{n}", "0")
        assert alike(text) != alike(text.replace(before, after)), before
