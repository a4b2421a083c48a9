"""Rank divergence: two ranks of one job compiled something else.

Found where the runs of several ranks are merged (`irscope run --world`); `irscope.comparing.ranks` tells how.
"""

from __future__ import annotations

import ast
import re

from irscope.comparing.ranks.differences import Difference, What
from irscope.findings.places import function_range
from irscope.protocol import Compile, Finding, Origin, Range, Related, Severity
from irscope.usercode.source import nodes_at, range_of_line, range_of_node
from irscope.vocabulary.findings import FAST_AND_DEEP, FindingKind

KIND = FindingKind(
    id="rank-divergence",
    label="Rank divergence",
    short=("rank divergence", "rank divergences"),
    lanes=FAST_AND_DEEP,
    severity=Severity.WARNING,
    filter_label="Rank divergences",
    stops_debugger=True,
    order=110,
)
ONE_RANK = "torch.distributed.config.compile_on_one_rank = True"
_LONGEST = 160


def finding_of(difference: Difference, has_one_rank: bool) -> Finding:
    """The finding of a difference, on the line that it came from.

    Args:
        has_one_rank: Whether the torch of the run has ``torch.distributed.config.compile_on_one_rank``, and it is off.
    """
    file, where = _place(difference)
    a, b = difference.ranks
    by_library = difference.what is What.CONSTANT and not difference.is_captured
    hints = _HINTS[difference.what]
    if by_library:
        hints = (_ONE_RANK_HINT, *hints[1:]) if has_one_rank else hints[1:]
    why = _WHY[difference.what] if not by_library else _WHY_LIBRARY
    seen = f" The first stage that shows it: {difference.stage}." if difference.stage else ""
    same_line = difference.finding
    related = (Related(same_line.file, same_line.range, same_line.message),) if same_line else ()
    return Finding(
        kind=KIND.id,
        code=f"rank-divergence-{difference.what.value}",
        severity=Severity.ERROR if difference.what is What.COLLECTIVE else KIND.severity,
        message=_message(difference, a, b),
        explanation=why + seen,
        hints=hints,
        link=None,
        file=file,
        range=where,
        count=1,
        compiles=(difference.compile.id,),
        related=related,
        ranks=(a, b),
    )


def _place(difference: Difference) -> tuple[str, Range]:
    if difference.finding is not None:
        return difference.finding.file, difference.finding.range
    if (origin := difference.origin) is not None:
        return origin.file, _range_at(origin)
    compile: Compile = difference.compile
    return compile.file, function_range(compile)


def _range_at(origin: Origin) -> Range:
    """The value of a statement of one line, else the line."""
    for node in nodes_at(origin.file, origin.line):
        value = getattr(node, "value", None)
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.Return, ast.AnnAssign)) and isinstance(value, ast.expr):
            where = range_of_node(origin.file, value)
            if where.start.line == where.end.line == origin.line:
                return where
    return range_of_line(origin.file, origin.line)


def _message(difference: Difference, a: int, b: int) -> str:
    first, other, what = _short(difference.first), _short(difference.other), difference.what
    title = f"`{difference.compile.title}`"
    if what is What.CONSTANT:
        return f"The rank is compiled into the graph: rank {a} has {first} here, rank {b} has {other}."
    if what is What.COLLECTIVE:
        return f"The ranks communicate differently: rank {a} has {first} here, rank {b} has {other}."
    if what is What.SHAPE:
        return f"The ranks have other shapes: rank {a} has {first} here, rank {b} has {other}."
    if what is What.GRAPH:
        return f"The ranks compiled different graphs: rank {a} has {first} here, rank {b} has {other}."
    if what is What.BREAK:
        ends = f"“{first.replace('-', ' ')}” on rank {a}, “{other.replace('-', ' ')}” on rank {b}"
        return f"The compiles of {title} ended differently: {ends}."
    if what is What.COUNT:
        return f"The ranks compiled {title} a different number of times: rank {a} has {first}, rank {b} has {other}."
    if what is What.MISSING:
        return f"Not all ranks compiled {title}: rank {a} has {first}, rank {b} has {other}."
    if what is What.CACHE:
        return f"The cache serves some ranks only: rank {a} has {first} for {title}, rank {b} has {other}."
    return f"The ranks compiled in another order: where rank {a} compiled {first}, rank {b} compiled {other}."


def _short(text: str) -> str:
    text = re.sub(r"torch\.ops\.", "", text)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


_WAITS = (
    "A collective waits until every rank of its group has called it, so ranks that compile more make the others wait."
)
_WHY = {
    What.CONSTANT: "A number that depends on the rank was read while the function was traced, so it became a constant. "
    "Every rank compiles its own graph, and no rank can use what another one has put into a cache.",
    What.COLLECTIVE: "All ranks of a group must call the same collectives in the same order with the same sizes. "
    "Otherwise the job hangs, or its numbers are wrong.",
    What.SHAPE: "Every rank compiles its own graph for its own shapes. If a collective takes one of them, the job hangs or "
    "fails.",
    What.GRAPH: "The code took another way on one of the ranks while it was traced. Every rank compiles its own graph.",
    What.BREAK: "One of the ranks runs a part of the function as plain Python. " + _WAITS,
    What.COUNT: "The arguments changed on one of the ranks and not on the other. " + _WAITS,
    What.MISSING: "The function was called on some of the ranks only. " + _WAITS,
    What.ORDER: "The functions were called in another order. " + _WAITS,
    What.CACHE: "The graphs are the same, but the cache folders of the ranks are not. " + _WAITS,
}
_WHY_LIBRARY = (
    "PyTorch has computed a number from the place of the rank in the device mesh while it traced, as the part of a "
    "vocabulary that the rank holds. Every rank compiles its own graph, and no rank can use what another one has put into "
    "a cache."
)
_ONE_RANK_HINT = f"Set `{ONE_RANK}` before the model is compiled: the number is then computed when the graph runs."
_HINTS: dict[What, tuple[str, ...]] = {
    What.CONSTANT: (
        "Read the rank outside of the compiled function, and pass what depends on it as a tensor.",
        "If each rank has to have its own graph, compile once and keep the caches of all ranks.",
    ),
    What.COLLECTIVE: ("Call collectives on all ranks, outside of conditions that depend on the rank or on its data.",),
    What.SHAPE: (
        "Pad or split so that every rank has the same shape, or mark the size with torch._dynamo.mark_dynamic.",
    ),
    What.GRAPH: ("Keep conditions that depend on the rank outside of the compiled function.",),
    What.BREAK: ("Remove the graph break, or move what depends on the rank out of the compiled function.",),
    What.COUNT: ("Give all ranks the same shapes and values, or mark the size with torch._dynamo.mark_dynamic.",),
    What.MISSING: ("Call compiled functions on all ranks; what one rank alone does need not be compiled.",),
    What.ORDER: ("Call the functions in the same order on all ranks.",),
    What.CACHE: (
        "Give all ranks the same cache: the same TORCHINDUCTOR_CACHE_DIR, or a copy of it, or a remote cache.",
        "If the folders are the same, compare the keys: irscope why-miss.",
    ),
}
