"""If one thing became several, what computes comes first: a step in goes there, and a command at a line lands there.

An operation becomes several: constants, the memory of its result, a change of layout, and then what the line is about.
Stages know no more than names of operations, so these decide; what is unknown counts as something that computes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from irscope.pipelines.registry import role_of
from irscope.provenance.elements import Item
from irscope.vocabulary.stages import Role

_WORK = re.compile(
    r"dot|matmul|gemm|mm\b|conv(?!ert)|linear|FullyConnected|attention|einsum|fused?_|fusion|_kernel", re.IGNORECASE
)
_AROUND = re.compile(
    r"broadcast|reshape|transpose|permute|convert|bitcast|copy|clone|expand|squeeze|view|slice|tuple|getitem|Cast\b|aten\.t\b",
    re.IGNORECASE,
)
_GIVEN = re.compile(
    r"constant|\bconst\b|device_data|parameter\b|iota|null_value|alloc_|kill_object|shape_heap|\bget_attr\b|initializer",
    re.IGNORECASE,
)
_RANKED = (Role.GRAPH, Role.TEXT)
"""In a kernel and below it each line is as good as another: the first comes first."""
MOST_OF_WORK = 1
"""The weight up to which something computes."""
_LONGEST = 120
"""Characters of a line in which its operation is looked for."""


def is_ranked(stage: str) -> bool:
    """Whether some lines of this kind of stage come before others."""
    return role_of(stage) in _RANKED


def weight(stage: str, item: Item, row: str) -> int:
    """How far back something is among its siblings: 0 for much work, 1 for any, 2 for layouts, 3 for what is given.

    Args:
        stage: The name of its kind of stage.
        row: Its line in the stage's text, which tells the operation where the stage is not a graph.
    """
    if not is_ranked(stage):
        return 0
    if item.op and item.op != "call":
        return 3
    if item.facts is not None and item.facts.is_view:
        return 2
    operation = item.target if item.op else _operation(row)
    ranks = ((_GIVEN, 3), (_WORK, 0), (_AROUND, 2))
    return next((rank for pattern, rank in ranks if pattern.search(operation)), 1)


def _operation(row: str) -> str:
    """What a line of a text calls: ``stablehlo.add`` of ``%8 = stablehlo.add %7, %5``, and ``add`` of ``k = add j i``."""
    head = row[:_LONGEST].partition(" = ")[2] or row[:_LONGEST]
    return re.split(r"[(\[]? ?[%@(]", head, maxsplit=1)[0]


def in_order(weights: Iterable[tuple[str, int]]) -> list[int]:
    """The numbers of siblings, each given as its stage and weight, in the order in which they are offered: stage by
    stage as they come, and in each the heaviest first."""
    rows = list(weights)
    stages = {stage: at for at, stage in reversed(list(enumerate(dict.fromkeys(stage for stage, _ in rows))))}
    return sorted(range(len(rows)), key=lambda at: (stages[rows[at][0]], rows[at][1]))
