"""Whether a program fits into the memory of a target."""

from __future__ import annotations

from typing import Any

from irscope.pipeline_captures.inductor import fitting

GB = 10**9


def a_plan(peak: int, *inputs: tuple[str, int]) -> dict[str, Any]:
    given = [list(each) for each in inputs]
    return {"inputs": given, "steps": [], "freed": {}, "peak": {"bytes": peak, "step": 0, "holds": []}}


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


def test_what_the_forward_keeps_is_held_until_the_code_lets_it_go() -> None:
    """Two layers: each gradient takes the place of what its layer had kept."""
    kept = (("primals_1", 8 * GB), ("relu", 20 * GB), ("mul", 30 * GB), ("tangents_1", GB))
    steps = [{"kernel": "mm", "live": live * GB} for live in (4, 14, 24)]
    backward = {**a_plan(24 * GB, *kept), "steps": steps, "freed": {"mul": 0, "tangents_1": 0, "relu": 1}}
    needs = fitting.needs_of(a_plan(0), backward, GB, GB, 0, (GB, GB))
    assert (
        needs.backward == (4 + 20 + 30 + 1 - 1) * GB
    )  # at its first step; at its peak it has 24 and nothing that is kept
    assert fitting.needs_of(a_plan(0), {**backward, "freed": {}}, GB, GB, 0, (GB, GB)).backward == (24 + 51 - 1) * GB


def test_a_forward_that_needs_more_than_its_backward() -> None:
    needs = fitting.needs_of(a_plan(90 * GB, ("primals_1", GB)), a_plan(GB, ("primals_1", GB)), GB, GB, 0, (GB, GB))
    assert needs.total == 91 * GB


def test_a_step_of_the_optimizer_that_needs_more_than_the_backward() -> None:
    """AdamW makes one list of the size of the parameters, when the backward is over."""
    needs = fitting.needs_of(FORWARD, BACKWARD, 50 * GB, 50 * GB, 100 * GB, (50 * GB, 50 * GB), step=50 * GB)
    assert (needs.step, needs.total) == (50 * GB, (50 + 50 + 100 + 2 + 50) * GB)
    line = next(line for line in fitting.stage_text(needs, 85 * GB, "h100").split("\n") if line.startswith("step"))
    assert line.split() == [*["step", "of", "the", "optimizer,", "at", "its", "peak"], "50", "GB"]


def a_view(name: str, of: str) -> dict[str, Any]:
    return {"name": name, "bytes": 30 * GB, "how": "view", "of": of}


def test_views_of_one_buffer_are_kept_once() -> None:
    """Query, key and value are views of one product; each is an input of the backward with the extent of the product."""
    product = {"name": "buf0", "bytes": 31 * GB, "how": "allocated", "of": ""}
    made = {"outputs": ["buf9", "primals_1", "buf1", "buf2", "buf0"], "buffers": [product, a_view("buf1", "buf0"), a_view("buf2", "buf0")]}  # fmt: skip
    forward = {**a_plan(31 * GB), **made}
    kept = (("primals_1", 8 * GB), ("query", 30 * GB), ("key", 30 * GB), ("value", 30 * GB), ("tangents_1", GB))
    backward = {**a_plan(5 * GB, *kept), "freed": {"query": 0, "key": 0, "value": 0, "tangents_1": 0}}
    assert fitting.needs_of(forward, backward, GB, 0, 0, (GB, 0)).backward == (31 + 1 + 5) * GB
    assert fitting.kept_bytes(forward, backward) == 31 * GB
    others = {
        **forward,
        "outputs": ["buf9", "s0", "buf1", "buf2", "buf0"],
    }  # not what the backward gets: a symbol comes first
    assert fitting.needs_of(others, backward, GB, 0, 0, (GB, 0)).backward == (90 + 1 + 5) * GB


def test_what_functions_called_before_have_kept_is_there_and_their_gradients_are_not() -> None:
    """A model, then its loss as a second function: the loss has its backward while the model's is to come."""
    loss = a_plan(2 * GB, ("logits", 8 * GB)), a_plan(8 * GB, ("logits", 8 * GB), ("tangents_1", 4))
    needs = fitting.needs_of(*loss, 20 * GB, 20 * GB, 40 * GB, (0, 0), 20 * GB, (100 * GB, 20 * GB, 0))
    assert needs.backward == 0, "16 GB, of which 20 GB of gradients are counted that are not there yet"
    assert needs.total == (20 + 40 + 8 + 100 + 20) * GB
    large = fitting.needs_of(*loss, 20 * GB, 20 * GB, 40 * GB, (0, 0), 500 * GB, (100 * GB, 20 * GB, GB))
    assert large.total == (20 + 40 + 8 + 20 + 500 + 1) * GB, "when the optimizer steps, nothing is kept"


def test_each_thread_that_multiplies_has_a_workspace() -> None:
    multiplies = [{"kernel": "extern_kernels.addmm", "live": 0}]
    plans = {**a_plan(0), "steps": multiplies}, {**a_plan(0), "steps": [{"kernel": "triton_mm", "live": 0}]}
    assert fitting.needs_of(*plans, GB, GB, 0, (GB, GB), workspace=GB).libraries == GB
    assert fitting.needs_of(plans[0], plans[0], GB, GB, 0, (GB, GB), workspace=GB).libraries == 2 * GB
