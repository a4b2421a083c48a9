"""What is captured of a pruned model: all of Inductor, and the zeros and masks of the parameters in each graph."""

from __future__ import annotations

import dataclasses
from typing import Any

from irscope.capture.nodes import NodeWriter
from irscope.capture.run_book import RunBook
from irscope.events.trace import Record
from irscope.findings.places import function_range
from irscope.internals.graph_frames import graph_of
from irscope.internals.graph_inputs import tensors_of
from irscope.internals.modes import plain_modes
from irscope.pipeline_captures.inductor.capture import InductorCapture
from irscope.pipeline_captures.pruning.sparsity import Sparsity, sparsities, text_of
from irscope.pipelines.dynamo_stages import DYNAMO_GRAPH
from irscope.pipelines.pruning.stages import MASK, SPARSITY
from irscope.protocol import CaptureGap, Finding, Range
from irscope.usercode.source import range_of_line
from irscope.usercode.user_files import is_user_file
from irscope.vocabulary.stages import StageKind


class PruningCapture(InductorCapture):
    """Looks at the parameters while Dynamo has them."""

    def __init__(self, book: RunBook) -> None:
        super().__init__(book)
        self._frames = NodeWriter()

    def data_of(self, record: Record, compile: str, kind: StageKind, backward: bool) -> object:
        """What is known about a stage besides its text; the parameters of Dynamo's graph are looked at."""
        if kind is DYNAMO_GRAPH:
            try:
                self._look(record, compile, graph_of(record.event))
            except Exception as error:  # noqa: BLE001  the rest is captured in any case
                what = f"the zeros and masks of the parameters of {compile}"
                self.book.gap(CaptureGap(what, f"{type(error).__name__}: {error}"))
        return super().data_of(record, compile, kind, backward)

    def _look(self, record: Record, compile: str, graph: Any) -> None:
        if graph is None:
            return
        inputs = list(tensors_of(graph))
        with self.book.quietly(), plain_modes():
            found = sparsities((node.name, name, tensor) for node, name, tensor in inputs)
        nodes = {node.name: node for node, _, _ in inputs}
        found = [dataclasses.replace(one, mask=_product(nodes[one.mask]).name) if one.mask else one for one in found]
        devices = {tensor.device.type for _, _, tensor in inputs}
        text = text_of(found, "cuda" if "cuda" in devices else ", ".join(sorted(devices)))
        data = {"parameters": [dataclasses.asdict(one) | {"slices": sorted(one.slices.items())} for one in found]}
        self.book.put_stage(compile, SPARSITY.name, text, record.attempt, data)
        self._find_masks(compile, found, {node.name: node for node in graph.graph.nodes})

    def _find_masks(self, compile: str, found: list[Sparsity], nodes: dict[str, Any]) -> None:
        """One finding for each of the user's lines, with all masks that it multiplies by."""
        by_line: dict[tuple[str, Range], list[Sparsity]] = {}
        for one in found:
            if one.mask and (place := self._place(compile, nodes[one.mask])) is not None:
                by_line.setdefault(place, []).append(one)
        for (file, where), masked in by_line.items():
            names = ", ".join(f"`{one.name}`" for one in masked)
            is_one = len(masked) == 1
            share = 100 * sum(one.zeros for one in masked) / max(sum(one.elements for one in masked), 1)
            head = f"The mask of {names} is in the graph" if is_one else f"The masks of {names} are in the graph"
            what = "the parameter by it" if is_one else "the parameters by them"
            self.book.findings.add(
                Finding(
                    kind=MASK.id,
                    code="mask-in-graph",
                    severity=MASK.severity,
                    message=f"{head}: each call multiplies {what}.",
                    explanation=f"{share:.0f} % of the elements are zero. The kernels are dense, so the zeros save no time.",
                    hints=(
                        "After pruning, `torch.nn.utils.prune.remove(module, name)` puts the zeros into the parameter.",
                    ),
                    link="https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.prune.remove.html",
                    file=file,
                    range=where,
                    count=1,
                    compiles=(compile,),
                )
            )

    def _place(self, compile_id: str, product: Any) -> tuple[str, Range] | None:
        """The user's line that a node is from, else the function."""
        frames = self._frames.frames(product.meta.get("stack_trace") or "")
        mine = [(file, range_of_line(file, line)) for file, line, _ in frames if is_user_file(file)]
        compile = self.book.compiles.get(compile_id)
        return mine[-1] if mine else (compile.file, function_range(compile)) if compile is not None else None


def _product(mask: Any) -> Any:
    """The node that multiplies by a mask, whose dtype may be changed before; the mask itself if there is none."""
    users = [*mask.users, *(after for node in mask.users for after in node.users)]
    return next((node for node in users if len(node.all_input_nodes) > 1), mask)
