"""Unrolled loop: Dynamo traces a Python loop round by round, so a graph has the body once for each round."""

from __future__ import annotations

import ast
import dataclasses
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from irscope.findings.detector import Detector
from irscope.findings.moment import Moment
from irscope.fixing.proposals import proposals
from irscope.fixing.source import source_of_file
from irscope.ir.graphs import GraphNode, parse_graph
from irscope.protocol import Finding, Severity, carrying_out
from irscope.usercode.source import head_of, parse, range_of_node
from irscope.usercode.user_files import is_user_file
from irscope.vocabulary.findings import FAST_AND_DEEP, FindingKind

KIND = FindingKind(
    id="unrolled-loop",
    label="Unrolled loop",
    short=("unrolled loop", "unrolled loops"),
    lanes=FAST_AND_DEEP,
    severity=Severity.HINT,
    order=45,
)
_LEAST_ROUNDS, _LEAST_OPERATIONS = 16, 64
_MOST_IN_A_ROUND = 4
"""Calls of one operation: what is there less often is not in each round."""
_LEAST_SHARE = 0.5
"""Of the operations of a graph."""


def detect(moment: Moment) -> Iterator[Finding]:
    """The loop over numbers that most of a Dynamo graph comes from, at its head."""
    if moment.record.compile is None or moment.record.payload.count("\n") < _LEAST_OPERATIONS:
        return
    try:
        nodes = [node for node in parse_graph(moment.record.payload).nodes if node.op.startswith("call")]
    except ValueError:
        return
    loops: dict[tuple[str, ast.For | ast.While], list[GraphNode]] = defaultdict(list)
    by_place: dict[tuple[str, int], list[GraphNode]] = defaultdict(list)
    for node in nodes:
        if node.origin is not None and is_user_file(node.origin.file):
            by_place[node.origin.file, node.origin.line].append(node)
    for (file, line), there in by_place.items():
        if (loop := _loop_around(file, line)) is not None:
            loops[file, loop] += there
    for (file, loop), inside in loops.items():
        rounds = _rounds(inside)
        if rounds >= _LEAST_ROUNDS and len(inside) >= max(_LEAST_OPERATIONS, _LEAST_SHARE * len(nodes)):
            where = head_of(file, range_of_node(file, loop))
            finding = Finding(
                kind=KIND.id,
                code=KIND.id,
                severity=KIND.severity,
                message=f"This loop is unrolled: {rounds} rounds make {len(inside)} of the {len(nodes)} operations of this graph.",
                explanation="Dynamo traces a loop of Python round by round. Compile time grows with the rounds, and often faster than they do; another number of rounds is another compile.",
                hints=(
                    "Compile the body instead: put it into a function under `torch.compile`, and leave the loop to Python.",
                    "Or use an operator that loops by itself: `torch._higher_order_ops.scan.scan`, or a layer such as `torch.nn.GRU`.",
                ),
                link=None,
                file=file,
                range=where,
                count=1,
                compiles=(moment.record.compile,),
                related=(),
            )
            source = source_of_file(file)
            bodies = proposals(finding, source.text) if source is not None else ()
            yield dataclasses.replace(finding, fixes=carrying_out(bodies[:1]))


def _rounds(nodes: Sequence[GraphNode]) -> int:
    """How many times the operation that is rarest, of those that are in each round, is there."""
    counts = Counter(node.target for node in nodes).values()
    return min((times for times in counts if times >= max(counts) / _MOST_IN_A_ROUND), default=0)


def _loop_around(file: str, line: int) -> ast.For | ast.While | None:
    """The innermost loop around a line, if it counts: not one over the layers of a model."""
    tree = parse(file)
    around = [
        node
        for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, (ast.For, ast.While)) and node.body[0].lineno <= line <= (node.body[-1].end_lineno or 0)
    ]
    innermost = max(around, key=lambda loop: loop.lineno, default=None)
    return innermost if innermost is not None and _counts(innermost) else None


def _counts(loop: ast.For | ast.While) -> bool:
    if isinstance(loop, ast.While):
        return True
    name = loop.iter.func if isinstance(loop.iter, ast.Call) else None
    return isinstance(name, ast.Name) and name.id == "range" and "len(self." not in ast.unparse(loop.iter)


DETECTORS = (Detector("dynamo_output_graph", detect),)
