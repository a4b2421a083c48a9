"""`irscope diverge` on graphs that write: no false alarm, and a fault is named at the step that made it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from irscope.protocol import ValuesRequest
from irscope.store.store import Store
from irscope.values.run.reading import divergences
from irscope.worker.client import Worker
from support import lines_marked, run_captured, run_cli_forked

HERE = Path(__file__).parent
WORLD = HERE.parents[1] / "data" / "world"
DAILY = (
    "made_inside", "input_and_other", "old_value_is_used", "cond_and_custom", "effect", "scaled_to_one",
)  # fmt: skip
NIGHTLY = (
    "returns_too", "two_arguments", "two_views_of_one", "list_of_tensors", "optional_none", "optional_given",
    "twice_in_place", "view_of_input", "transposed", "relu_in_place", "slice_write", "index_put", "scatter", "out_variant",
    "cond_after_write", "loop_and_write", "effect_twice", "random_then_write", "dropout_in_branch", "trained",
)  # fmt: skip
FAULTS = {
    "pass": ("pass", "decompose_auto_functionalized"),
    "input": ("pass", "decompose_auto_functionalized"),
    "own": ("pass", "post_grad_custom_post_pass(scale_sin)"),
    "lowering": ("lowering", ""),
    "step": ("step", "dynamo graph → inference graph"),
}
"""By the mark of its line: how it came, and the pass or step."""


def compared(script: str, args: tuple[str, ...], folder: Path, worker: Worker | None) -> list[dict[str, Any]]:
    wanted = ValuesRequest(statistics=False, divergence=True)
    ran = run_captured(HERE / script, folder / "runs.db", "deep", args, worker=worker, values=wanted)
    assert (ran.report.outcome.exit_code, ran.report.capture_gaps) == (0, ())
    with Store(ran.store) as store:
        return [data for _, data in divergences(store, ran.report) if not data["stage"].endswith("-backward")]


@pytest.fixture(scope="module")
def right(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, shared_worker: Worker | None
) -> dict[str, dict[str, Any]]:
    found = compared("mutating_graphs.py", request.param, tmp_path_factory.mktemp("right"), shared_worker)
    return dict(zip(request.param, found, strict=True))


@pytest.mark.parametrize(
    ("right", "name"),
    [
        *(pytest.param(DAILY, name, id=name) for name in DAILY),
        *(pytest.param(NIGHTLY, name, id=name, marks=pytest.mark.nightly) for name in NIGHTLY),
    ],
    indirect=["right"],
    scope="module",
)
def test_graphs_that_write_and_are_right_do_not_diverge(right: dict[str, dict[str, Any]], name: str) -> None:
    data = right[name]
    assert (data["found"], data["notes"]) == (None, [])
    assert data["nodes"]


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory, shared_worker: Worker | None) -> dict[str, dict[str, Any]]:
    found = compared("mutating_faults.py", (), tmp_path_factory.mktemp("faults"), shared_worker)
    return dict(zip(FAULTS, found, strict=True))


@pytest.mark.since_torch("2.13", "where Inductor's passes leave the clone out")
@pytest.mark.parametrize("mark", FAULTS)
def test_a_fault_is_named_at_the_step_that_made_it(faults: dict[str, dict[str, Any]], mark: str) -> None:
    data = faults[mark]
    found, script = data["found"], HERE / "mutating_faults.py"
    assert found is not None, data["notes"]
    assert (found["how"], found["pass"]) == FAULTS[mark]
    assert found["file"] == str(script)
    assert {found["line"]} == lines_marked(script.read_text("utf-8"), f"# @{mark}")


@pytest.mark.nightly
@pytest.mark.since_torch("2.13", "where Inductor's passes leave the clone out")
@pytest.mark.parametrize(("name", "line", "blamed"), [("customclone", 14, "pass"), ("customclone_right", 0, "")])
def test_a_copy_that_a_custom_operator_reads(name: str, line: int, blamed: str, tmp_path: Path) -> None:
    """After a public report (`tests/data/world`): its program is wrong compiled, and the one beside it right."""
    done = run_cli_forked("diverge", WORLD / f"{name}.py", "--store", tmp_path / "runs.db", "--json")
    answer = json.loads(done.stdout)
    found = [data["found"] for data in answer["compared"] if data["found"] is not None]
    assert [(one["how"], one["line"]) for one in found] == ([(blamed, line)] if blamed else [])
    assert (done.returncode, answer["dynamo"]["difference"]) == (len(found), "")
