"""A trace of a real run, opened: the findings of the run itself, which irscope watched while PyTorch wrote the trace."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from irscope.opening.paths import Roots
from irscope.opening.trace_run import TraceSpec, open_trace
from irscope.protocol import Report
from irscope.store.store import Store
from script_runs import DRIVER
from support import run_captured
from test_markers import SCRIPTS, is_among_others
from truth import script_of

TESTS = Path(__file__).parents[2]
NO_RECORD = {
    "recompile-limit": "PyTorch only warns of it in its log",
    "InvalidBackend": "nothing was compiled",
    "GB0003": "PyTorch refuses a generator function before it begins a compile",
}
"""By kind or code, what no record of the trace is about."""
ELSEWHERE = {"one_line.py", "multiline.py", "constraints.py", "generator.py", "transforms.py"}
"""Files where PyTorch's printed stack has another line than its instructions, or no stack, or two places are one without columns."""


def both(folder: Path, scripts: Sequence[Path]) -> tuple[Report, Report]:
    """What was captured live, and what is in the trace of the same run."""
    driver, store, trace = folder / "driver.py", folder / "runs.db", folder / "trace"
    driver.write_text(DRIVER, encoding="utf-8")
    arguments = [str(folder / "errors.json"), *map(str, scripts)]
    live = run_captured(driver, store, "fast", arguments, env={"TORCH_TRACE": str(trace)}, cwd=str(folder)).report
    with Store(str(store)) as opened:
        return live, opened.report(open_trace(TraceSpec(str(trace), Roots(str(TESTS)), strict=True), opened))


def keys(report: Report) -> dict[tuple[str, str, str, int], tuple[int, tuple[str, ...]]]:
    """What and where is found, how often, and in which compiles."""
    return {
        (one.kind, one.code, Path(one.file).name, one.range.start.line): (one.count, one.compiles)
        for one in report.findings
        if not {one.kind, one.code} & NO_RECORD.keys() and Path(one.file).name not in ELSEWHERE
    }


def test_an_opened_trace_has_what_was_found_live(tmp_path: Path) -> None:
    live, told = both(tmp_path, [script_of(name) for name in ("gb_deep_helpers", "gb_resume_chain", "rc_train_eval")])
    assert len(keys(live)) > 5
    assert keys(told) == keys(live)
    assert [(one.id, one.function, one.outcome, one.graph_ops) for one in told.compiles] == [
        (one.id, one.function, one.outcome, one.graph_ops) for one in live.compiles
    ]


@pytest.mark.nightly
def test_opened_traces_of_all_markers_have_what_was_found_live(tmp_path: Path) -> None:
    live, told = both(tmp_path, [one for one in SCRIPTS if is_among_others(one)])
    assert len(keys(live)) > 250
    assert keys(told) == keys(live)
