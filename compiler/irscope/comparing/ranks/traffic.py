"""What one rank sends and holds: its collectives with their bytes, and the peak of its memory plans."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

from irscope.comparing.ranks.differences import RankRun, line_of
from irscope.comparing.ranks.normalized import RankNode, group_of, normalized, reduction_of
from irscope.ir.graphs import GraphNode
from irscope.pipelines.registry import role_of, stage_kind
from irscope.protocol import CaptureGap, Collective, Compile, StageRef
from irscope.vocabulary.stages import Part, Role

_TENSOR = re.compile(r"(?P<letters>[a-z]+)(?P<bits>\d+)(?:[a-z]\w*)?\[(?P<sizes>[^\]]*)\]")
_DTENSOR = ('"DTensor(', "torch.distributed.tensor")
"""In a captured graph: an annotation, or the function or placement that makes one."""
UNSEEN = CaptureGap(
    "collectives of DTensor",
    "AOTAutograd makes them from the captured graph; the fast lane ends before that, and a cache hit skips it."
    " A deep run shows them",
)
_PARTS = (Part.INFERENCE, Part.FORWARD, Part.BACKWARD)


def collectives_of(run: RankRun) -> Iterator[Collective]:
    """The collectives of one call of everything that a rank compiled.

    They are read from the graphs of AOTAutograd, forward and backward; in the fast lane, which has none, from the
    captured graph.  That has none of DTensor's: see `unseen_collectives`.
    """
    for compile in run.report.compiles:
        for stage in _graphs(compile):
            text = run.text(stage.id)
            try:
                nodes = normalized(text, run.data(stage.id))
            except ValueError:
                continue
            by_name = {each.node.name: each for each in nodes}
            for at, each in enumerate(nodes):
                if each.collective:
                    yield _collective(compile, stage, text, nodes, by_name, at)


def unseen_collectives(run: RankRun) -> CaptureGap | None:
    """Where a function works on DTensors and has no graph below the captured one; None if there is no such function.

    Dynamo keeps operations on DTensors as they are.  AOTAutograd makes collectives of them, of the backward as well.
    """
    for compile in run.report.compiles:
        for stage in _graphs(compile):
            if stage_kind(stage.name).is_captured and any(word in run.text(stage.id) for word in _DTENSOR):
                return UNSEEN
    return None


def _graphs(compile: Compile) -> list[StageRef]:
    graphs = [stage for stage in compile.stages if stage_kind(stage.name).is_graph and not stage.passed]
    lower = [stage for stage in graphs if stage_kind(stage.name).part in _PARTS]
    return lower or [stage for stage in graphs if stage_kind(stage.name).is_captured]


def _collective(
    compile: Compile, stage: StageRef, text: str, nodes: list[RankNode], by_name: dict[str, RankNode], at: int
) -> Collective:
    node = nodes[at].node
    origin = line_of(nodes, at)
    return Collective(
        compile=compile.id,
        stage=stage.id,
        node=node.name,
        operation=nodes[at].collective,
        reduction=reduction_of(text, node),
        group=group_of(text, node),
        tensor=node.detail,
        sent_bytes=bytes_given(node, by_name),
        received_bytes=bytes_of(node.detail),
        file=origin.file if origin else "",
        line=origin.line if origin else 0,
    )


def bytes_given(node: GraphNode, by_name: Mapping[str, RankNode]) -> int | None:
    """The bytes of the tensors that a collective takes; None if no size is known."""
    sent = [bytes_of(by_name[name].node.detail) for name in node.inputs if name in by_name]
    known = [each for each in sent if each is not None]
    return sum(known) if known else None


def bytes_of(detail: str) -> int | None:
    """The bytes of a tensor as graphs print it, ``f32[8, 32][32, 1]cpu``; None for another value or a symbolic size."""
    match = _TENSOR.match(detail)
    if match is None:
        return None
    sizes = [size.strip() for size in match["sizes"].split(",") if size.strip()]
    if not all(size.isdecimal() for size in sizes):
        return None
    return math.prod(map(int, sizes)) * max(1, int(match["bits"]) // 8)


def peak_of(run: RankRun) -> int | None:
    """Bytes that the largest of the rank's programs holds at its peak, with its inputs; None without a memory plan."""
    peaks = []
    for compile in run.report.compiles:
        for stage in compile.stages:
            if role_of(stage.name) is Role.MEMORY:
                try:
                    plan = run.data(stage.id)
                    live = max((int(step["live"]) for step in plan["steps"]), default=0)
                    peaks.append(live + sum(int(size) for _, size in plan["inputs"]))
                except (LookupError, TypeError, ValueError):
                    continue  # data of another version, or from elsewhere
    return max(peaks, default=None)
