"""Whether a program fits into the memory of a target."""

from __future__ import annotations

from typing import Any

from irscope.pipeline_captures.inductor import fitting

GB = 10**9


def a_plan(peak: int, *inputs: tuple[str, int]) -> dict[str, Any]:
    return {"inputs": [list(each) for each in inputs], "peak": {"bytes": peak, "step": 0, "holds": []}}


FORWARD = a_plan(30 * GB, ("primals_1", 50 * GB), ("primals_2", 2 * GB))
# It has the weight again, what the forward has kept, and makes the gradient of 50 GB.
BACKWARD = a_plan(60 * GB, ("primals_1", 50 * GB), ("mul", 20 * GB), ("tangents_1", 4))


def test_inference() -> None:
    needs = fitting.needs_of(FORWARD, None, 50 * GB, 50 * GB, 0, (50 * GB, 50 * GB))
    assert (needs.inputs, needs.gradients, needs.backward, needs.total) == (2 * GB, 0, 0, 82 * GB)
    assert fitting.devices(needs, 85 * GB) == 1
    assert "It fits on one h100 (85 GB)." in fitting.stage_text(needs, 85 * GB, "h100")
    assert fitting.devices(needs, 82 * GB) == 1 and fitting.devices(needs, 82 * GB - 1) == 2


def test_training_counts_gradients_once_and_what_the_forward_keeps() -> None:
    needs = fitting.needs_of(FORWARD, BACKWARD, 70 * GB, 70 * GB, 100 * GB, (50 * GB, 50 * GB))
    assert needs.backward == 20 * GB + 4 + 60 * GB - 50 * GB
    # Parameters, their gradients, the optimizer, the input, the backward.
    assert needs.total == (70 + 70 + 100 + 2 + 30) * GB + 4
    text = fitting.stage_text(needs, 85 * GB, "h100")
    assert "It does not fit on one h100" in text and "4 of them" in text
    data = fitting.stage_data(needs, 85 * GB)
    assert (data["total"], data["devices"], data["memory"]) == (needs.total, 4, 85 * GB)


def test_a_forward_that_needs_more_than_its_backward() -> None:
    needs = fitting.needs_of(a_plan(90 * GB, ("primals_1", GB)), a_plan(GB, ("primals_1", GB)), GB, GB, 0, (GB, GB))
    assert needs.total == 91 * GB
