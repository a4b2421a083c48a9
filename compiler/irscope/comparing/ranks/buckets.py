"""The parts into which Dynamo cuts a graph at the buckets of DDP, and what the all-reduce of each runs beside.

DDP reduces a bucket as soon as its gradients are there, from a hook of autograd: the all-reduce is in no graph.  Dynamo's
DDPOptimizer therefore compiles each part by itself, so that autograd comes back between their backwards.  Nothing is
left in this graph beside which the bucket of the last backward could run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from irscope.comparing.ranks.differences import RankRun
from irscope.comparing.ranks.order import Step, steps_of_code, steps_of_graph
from irscope.comparing.ranks.overlaps import costs_of
from irscope.comparing.ranks.parts import Part, parts_of
from irscope.comparing.ranks.traffic import bytes_of
from irscope.ir.graphs import parse_graph
from irscope.pipelines.registry import role_of
from irscope.protocol import BucketSplit, Compile
from irscope.vocabulary.patterns import pattern
from irscope.vocabulary.stages import Role

_PART = pattern(r"(?:^|\.)(submod_\d+)$")
_PARAMETER = "_parameters_"
"""In the name that Dynamo gives to a parameter as an input of a graph."""


def buckets_of(run: RankRun) -> Iterator[BucketSplit]:
    """The parts of all compiles that DDP's buckets cut, in the order in which they are reduced."""
    for compile in run.report.compiles:
        stage = next((stage for stage in compile.stages if role_of(stage.name) is Role.SPLITS), None)
        if stage is not None:
            yield from _of_compile(run, compile, run.text(stage.id))


def _of_compile(run: RankRun, compile: Compile, text: str) -> Iterator[BucketSplit]:
    try:
        splits = splits_in(text)
    except ValueError:  # a text that is cut
        return
    backwards = {part.number: part for part in parts_of(compile.stages, run.text) if part.is_backward}
    steps = {number: _steps(run, part) for number, part in backwards.items()}
    for number, (name, parameters, size) in reversed(list(enumerate(splits))):
        later = [at for at in range(number - 1, -1, -1) if at in backwards]
        beside = [step for at in later for step in steps[at]]
        moved, flops = costs_of(beside)
        yield BucketSplit(
            compile=compile.id,
            number=len(splits) - number,
            name=name,
            parameters=parameters,
            bytes=size,
            backward=_stage(backwards.get(number)),
            beside=tuple(_stage(backwards[at]) for at in later),
            operations=len(beside),
            moved_bytes=moved,
            flops=flops,
        )


def splits_in(text: str) -> list[tuple[str, int, int | None]]:
    """The parts of a graph that DDPOptimizer split, in the order of the forward: how many parameters each takes, and
    their bytes.

    A parameter that several parts take counts for the last of them, whose bucket DDPOptimizer puts it in.  Raises
    ValueError for a text that is not a printed graph.
    """
    nodes = parse_graph(text).nodes
    sizes = {
        node.name.lower(): bytes_of(node.detail)
        for node in nodes
        if node.op == "placeholder" and _PARAMETER in node.name
    }
    seen: set[str] = set()
    found: list[tuple[str, int, int | None]] = []
    for node in reversed(nodes):
        if node.op == "call" and (part := _PART.search(node.target)):
            mine = dict.fromkeys(name.lower() for name in node.inputs if name.lower() in sizes)
            known = [sizes[name] for name in mine if name not in seen]
            seen.update(mine)
            found.append((part[1], len(known), None if None in known else sum(each or 0 for each in known)))
    return found[::-1]


def _steps(run: RankRun, part: Part) -> Sequence[Step]:
    if part.code is not None and (found := steps_of_code(run.text(part.code.id), run.data(part.code.id))):
        return found
    try:
        return steps_of_graph(run.text(part.graphs[-1].id), run.data(part.graphs[-1].id)) if part.graphs else ()
    except ValueError:
        return ()


def _stage(part: Part | None) -> str:
    if part is None:
        return ""
    return part.code.id if part.code is not None else part.graphs[-1].id
