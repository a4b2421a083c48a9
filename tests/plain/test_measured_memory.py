"""The memory of a step that was noted on a GPU: what is held and when, what is fragmented, and what the panel gets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from irscope.findings.peak_memory import peak_memory
from irscope.profiling.profile import CudaGraphs, Profile
from irscope.profiling.step_memory import FLOAT32, STATES, VARIABLES, step_memory
from irscope.protocol import Lane, Outcome, OutcomeKind, to_json
from irscope.store.store import Store
from irscope_server.view.reader import Reader
from support import lines_marked, write

MB = 1_000_000
SCRIPT = """\
import torch

net = torch.nn.Linear(4, 4)
optimizer = torch.optim.AdamW(net.parameters())  # states
kept = []
for _ in range(9):
    kept.append(torch.ones(3))  # kept
"""
HELD = [[1000, 20 * MB, STATES, "AdamW.exp_avg", FLOAT32], [100 * MB, 2 * MB, VARIABLES, "kept", ""]]


def facts(**more: Any) -> dict[str, Any]:
    """Two blocks: one that is freed before the peak, and one that is there at the peak, in the segment of `kept`."""
    span = [-1, "aten::empty", "", 0, None]
    blocks = [[0, 1, 1 * MB, 0, 80 * MB, True, 0], [40, 1, -1 * MB, 0, 80 * MB, True, 0],
              [50, 110 * MB, 3 * MB, 0, 80 * MB, True, 0], [100, 110 * MB, -3 * MB, 0, 80 * MB, True, 0]]  # fmt: skip
    segments = [[1000, 20 * MB], [100 * MB, 40 * MB], [200 * MB, 20 * MB]]
    given = {"spans": [span], "blocks": blocks, "held": HELD, "in_use": 22 * MB, "what": "step", "is_device": True}
    return {**given, "segments": segments * 2, **more}  # of the begin and of the end


@pytest.fixture
def run(tmp_path: Path) -> tuple[Path, str]:
    script, store = write(tmp_path, SCRIPT), tmp_path / "runs.db"
    with Store(str(store)) as opened:
        name = opened.create_run(str(script), [], Lane.DEEP, "digest")
        opened.set_outcome(name, Outcome(OutcomeKind.COMPLETED, 0, "", 1.0))
    return store, name


def test_what_is_free_beside_blocks_is_fragmentation(run: tuple[Path, str]) -> None:
    with Store(str(run[0])) as store:
        report = store.report(run[1])
        found = step_memory(facts(), store, report)
        assert (found.begin_bytes, found.peak_bytes, found.reserved_bytes) == (22 * MB, 25 * MB, 80 * MB)
        assert found.fragmented_bytes == 35 * MB, "of the segment of 40 MB; one segment is full, and one is empty"
        held = {one.name or one.kind: (one.bytes, one.free_beside) for one in found.held}
        assert held["AdamW.exp_avg"] == (20 * MB, 0) and held["kept"][1] + held["aten::empty"][1] == 35 * MB
        by_code = {one.code: one.range.start.line for one in peak_memory(found, report)}
        assert {by_code["memory-optimizer"]} == lines_marked(SCRIPT, "# states")
        assert {by_code["memory-fragmented"]} == lines_marked(SCRIPT, "# kept")
        full = step_memory(facts(segments=[[1000, 20 * MB], [100 * MB, 2 * MB], [110 * MB, 3 * MB]]), store, report)
        assert full.fragmented_bytes == 0 and [one.code for one in peak_memory(full, report)] == ["memory-optimizer"]


def test_the_panel_shows_the_measured_step_with_its_peak(run: tuple[Path, str]) -> None:
    with Store(str(run[0])) as store:
        memory = step_memory(facts(), store, store.report(run[1]))
        profile = Profile("", 1, 1.0, 1.0, 1.0, (), (), (), CudaGraphs(0.0, 0.0), memory=memory)
        store.put_profile(run[1], to_json(profile))
    reader = Reader(str(run[0]))
    try:
        (plan,) = json.loads(reader.answer("irscope/memory", {"run": run[1]}))["plans"]
    finally:
        reader.close()
    assert plan["measured"] and plan["live"][plan["peak"]] == max(plan["live"]) == 25 * MB
    assert "35 MB are free beside blocks" in plan["beside"] and "20 MB are cached and free" in plan["beside"]
    for at, live in enumerate(plan["live"]):
        there = sum(each["bytes"] for each in plan["buffers"] if each["first"] <= at <= each["last"])
        assert there <= live and (at != plan["peak"] or there == live)
    (block,) = (each for each in plan["buffers"] if each["name"] == "aten::empty")
    assert plan["live"][block["first"]] == 25 * MB and block["category"] == "temporary"
    assert {each["category"] for each in plan["buffers"]} == {"optimizer", "inputs", "temporary"}
    assert plan["modules"]["rows"][0]["whole"][0] == 25 * MB
