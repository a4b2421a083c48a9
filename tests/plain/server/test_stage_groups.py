"""The headings below which the stages of a compile are listed."""

from __future__ import annotations

from irscope.pipelines.registry import stage_kind
from irscope.protocol import StageRef
from irscope_server.stages.tree import Headings

INFERENCE = ["bytecode", "dynamo-graph", "inference-graph", "phases", "post-grad-graph", "output-code"]
TRAINING = [*INFERENCE[:2], "joint-graph", "forward-graph", "backward-graph", "phases", "post-grad-graph"]


def stages_of(*ids: str) -> list[StageRef]:
    def name(id: str) -> str:
        return "kernel" if "/" in id else id.removesuffix("-backward")

    return [StageRef(f"0/0/{id}", name(id), stage_kind(name(id)).language, 0) for id in ids]


def test_forward_and_backward_have_headings_of_their_own_where_there_are_both() -> None:
    stages = stages_of(*TRAINING, "post-grad-graph-backward", "kernel/cpp_0")
    headings = Headings(stages)
    listed = [(headings.of(one), one.id.removeprefix("0/0/")) for one in headings.in_order(stages)]
    assert listed == [
        ("Dynamo", "bytecode"),
        ("Dynamo", "dynamo-graph"),
        ("AOTAutograd", "joint-graph"),
        ("AOTAutograd", "forward-graph"),
        ("AOTAutograd", "backward-graph"),
        ("Inductor, forward", "post-grad-graph"),
        ("Inductor, backward", "post-grad-graph-backward"),
        ("Kernels", "kernel/cpp_0"),
        ("Other", "phases"),
    ]
    assert headings.titles(stages, True) == tuple(dict.fromkeys(title for title, _ in listed))


def test_without_a_backward_there_is_no_side() -> None:
    headings = Headings(stages := stages_of(*INFERENCE))
    assert headings.titles(stages, False) == ("Dynamo", "AOTAutograd", "Inductor", "Other")


def test_kernels_without_stages_have_a_heading() -> None:
    headings = Headings(stages := stages_of(*INFERENCE))
    assert headings.titles(stages, True) == ("Dynamo", "AOTAutograd", "Inductor", "Kernels", "Other")
    assert Headings([]).titles([], False) == ()
