"""``irscope/changes`` and ``irscope/measured`` of profiled runs: what an edit did, what breaks cost, what autotuning chose."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from irscope.internals.tuning_hooks import Choice, Tuned
from irscope.pipeline_captures.inductor.autotuning import operator_data
from irscope.profiling.break_words import BreakCost, RecompileCost
from irscope.profiling.profile import CudaGraphs, MeasuredLine, MeasuredProgram, Profile
from irscope.protocol import Compile, CompileOutcome, Lane, Outcome, OutcomeKind, StageRef, to_json
from irscope.store.store import Store
from irscope_server.base.archive import Archive
from irscope_server.panels.changes import ChangesParams, changes
from irscope_server.panels.measured import MeasuredParams, measured

SCRIPT = "/w/train.py"
TUNED = Tuned(
    "mm", "mm [8]", "mm", f'File "{SCRIPT}", line 7, in f\n', ("float32[8, 8]",),
    (Choice("mm", "ExternKernelCaller", "", 1e-5), Choice("triton_mm_3", "TritonTemplateCaller", "BLOCK_M=64", 2e-5)), (),
)  # fmt: skip
BREAK = BreakCost(SCRIPT, 9, "GB1", 3e-6, 1e-6, 2e-6, 0.0)


def a_profile(seconds: float) -> Profile:
    samples = tuple(seconds * (1 + 0.01 * (n % 7)) for n in range(60))
    program = MeasuredProgram("f", SCRIPT, 5, None, seconds, False, samples=samples)
    line = MeasuredLine(SCRIPT, 7, seconds / 2, 0.0, None, 1.0, ("k",))
    return Profile(
        "", 20, seconds, seconds, 0.0, (line,), (), (), CudaGraphs(0, 0), (program,),
        breaks=(BREAK,), recompiled=(RecompileCost("f", SCRIPT, 5, 3, 4.0, 1e-6),),
    )  # fmt: skip


class Context:
    def __init__(self, store: Path) -> None:
        self.archive = Archive(str(store))

    def uri_of(self, path: str) -> str:
        return f"file://{path}"


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Any, list[str]]:
    """Two runs: the second is faster, and another choice won."""
    path, names = tmp_path / "runs.db", []
    slower = replace(TUNED, choices=(replace(TUNED.choices[0], seconds=3e-5), TUNED.choices[1]))
    with Store(str(path)) as store:
        for tuned, seconds in ((TUNED, 2e-3), (slower, 1e-3)):
            run = store.create_run(SCRIPT, (), Lane.DEEP, "")
            store.put_compile(run, Compile("0/0", "f", SCRIPT, 5, CompileOutcome.COMPILED, 0, 3, 1.0))
            ref = StageRef("0/0/autotuning", "autotuning", "plaintext", 0)
            store.put_stage(run, "0/0", ref, "text", 1.0, {"operators": [operator_data(tuned)]})
            store.put_profile(run, to_json(a_profile(seconds)))
            store.set_outcome(run, Outcome(OutcomeKind.COMPLETED, 0, "", 1.0))
            names.append(run)
    return Context(path), names


async def test_changes_have_measured_time_and_choices(runs: tuple[Any, list[str]]) -> None:
    context, (before, after) = runs
    found = json.loads((await changes(context, ChangesParams(after, before))).json)
    assert found["measured"]["isSignificant"] and "50 % faster" in found["measured"]["words"]
    place = {"uri": f"file://{SCRIPT}", "line": 6}
    assert found["measured"]["lines"] == [{"place": place, "before": 1e-3, "after": 5e-4}]
    assert found["choicesChanged"] == [
        {"operator": "mm", "place": place, "before": "mm (10 µs), the other took ×2",
         "after": "triton_mm BLOCK_M=64 (20 µs), the other took ×1.5"},
    ]  # fmt: skip


async def test_the_time_tab_has_what_breaks_and_recompilations_take(runs: tuple[Any, list[str]]) -> None:
    context, (_, after) = runs
    found = json.loads((await measured(context, MeasuredParams(after))).json)
    assert [(one["what"], one["name"], one["place"]["line"]) for one in found["costs"]] == [
        ("graph-break", "GB1", 8), ("recompilation", "f", 4),
    ]  # fmt: skip
    assert (
        found["costs"][0]["words"]
        == "at least 3 µs of a step by the gaps around it (eager operators 1 µs, guards 2 µs)"
    )
