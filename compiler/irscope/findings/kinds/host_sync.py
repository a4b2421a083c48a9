"""Host sync: compiled code reads a tensor's value on the CPU, and waits for the device until it is there.

Only for tensors on an accelerator: on the CPU there is nothing to wait for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from irscope.findings.detector import Detector
from irscope.findings.moment import Moment
from irscope.findings.places import at_origin
from irscope.ir.graphs import Graph, GraphNode, parse_graph
from irscope.protocol import Finding, Severity
from irscope.usercode.user_files import is_user_file
from irscope.vocabulary.findings import FAST_AND_DEEP, FindingKind

KIND = FindingKind(
    id="host-sync",
    label="Host sync",
    short=("host sync", "host syncs"),
    lanes=FAST_AND_DEEP,
    severity=Severity.INFORMATION,
    filter_label="Host synchronizations",
    order=130,
)
_READS = {
    "item",
    "tolist",
    "cpu",
    "numpy",
    "nonzero",
    "is_nonzero",
    "masked_select",
    "unique",
    "torch.nonzero",
    "torch.unique",
}
_DEVICE = re.compile(r"\](?P<device>[a-z]+)(?::\d+)?$")


def detect(moment: Moment) -> Iterator[Finding]:
    """The nodes of the dynamo graph that bring values from a device to the CPU."""
    try:
        graph = parse_graph(moment.record.payload)
    except ValueError:
        return
    for node in syncs_in(graph):
        if node.origin is not None and is_user_file(node.origin.file):
            yield at_origin(
                moment,
                node.origin,
                node.target.rpartition(".")[2],
                kind=KIND.id,
                code=f"host-sync-{node.target.rpartition('.')[2].replace('_', '-')}",
                message=f"`{node.target}` waits for the device here: everything queued before it must finish first.",
                explanation=f"The graph calls {node.target} on a tensor that is on an accelerator ({node.code}).",
                hints=(
                    "Keep the value on the device (torch.where, masking, a tensor argument), or read it once after the loop.",
                    "If the copy is needed: `x.to('cpu', non_blocking=True)` into pinned memory, and synchronize where it is used.",
                ),
                severity=KIND.severity,
            )


def syncs_in(graph: Graph) -> list[GraphNode]:
    """Nodes that read a value of an accelerator's tensor on the host."""
    device = {node.name: found["device"] for node in graph.nodes if (found := _DEVICE.search(node.detail))}
    syncs: list[GraphNode] = []
    for node in graph.nodes:
        inputs = {device.get(name, "cpu") for name in node.inputs}
        if inputs <= {"cpu", "meta"}:
            continue
        to_host = node.target == "to" and device.get(node.name) == "cpu"
        if node.target in _READS or to_host:
            syncs.append(node)
    return syncs


DETECTORS = (Detector("dynamo_output_graph", detect),)
