"""What Inductor's scheduler fused, and what not, and why.

The data of the stage ``fusion`` is ``{"fused": […], "refused": […], "refusals": n, "reasons": {…}}``:

=============  =========================================================================================================
``fused``      in the order in which it happened: ``first`` and ``second`` (each ``{"nodes": names before fusion,
               "origins": names of post-grad nodes}``), ``kind`` (``vertical``: the second reads what the first writes;
               ``horizontal``: they share what they read; ``template``), ``score`` (text, highest fused first; empty
               if none was asked for), ``into`` (name of the fused node)
``refused``    pairs that ended in two kernels although one reads what the other writes or both touch one buffer:
               ``first``, ``second`` (likewise), ``kind``, ``reason`` (Inductor's last word on them, not the one that
               they were too far apart by then), ``buffers`` (what they share).  Where one of them is a call into a
               library, which Inductor does not consider, the second reads what the first writes, and ``kind`` is
               ``library``
``refusals``   how often Inductor refused a pair in all rounds, those that share nothing included
``reasons``    how often by reason
=============  =========================================================================================================
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import field
from itertools import islice, product
from typing import Any

from irscope.internals.fusion_hooks import fusion_hooks
from irscope.internals.hooks import Hook
from irscope.ir.fusion_reasons import LIBRARY_REASON, Reasons, reason_text, told
from irscope.vocabulary.records import dataclass

_MOST = 2000
_MOST_REASONS = 50


@dataclass
class Accepted:
    """A fusion that the scheduler made: the two nodes, the kind, the score, and the name of the result."""

    first: Any
    second: Any
    kind: str
    score: str
    into: str


@dataclass
class FusionLog:
    """What one schedule's fusion came to.

    Args:
        nodes: The scheduler's nodes after fusion.
        reasons: The reason for every pair that was refused; the last one if it was refused again.
        refusals: How often each reason was given.
    """

    nodes: Any = ()
    accepted: list[Accepted] = field(default_factory=list)
    reasons: Reasons = field(default_factory=dict)
    refusals: Counter[str] = field(default_factory=Counter)
    scores: dict[tuple[str, str], Any] = field(default_factory=dict)


def hooks(receive: Callable[[FusionLog], None]) -> list[Hook]:
    """Reports each schedule as soon as its nodes are fused.  The receiver must not raise."""
    return fusion_hooks(_Logs(receive))


class _Logs:
    """Writes the logs of the schedules whose nodes are being fused, one of which can lie inside another."""

    def __init__(self, receive: Callable[[FusionLog], None]) -> None:
        self._receive = receive
        self._open: list[FusionLog] = []

    def begins(self) -> None:
        self._open.append(FusionLog())

    def refused(self, first: str, second: str, reason: str, args: tuple[Any, ...]) -> None:
        if self._open:
            self._open[-1].reasons[first, second] = (reason, args)
            self._open[-1].refusals[reason] += 1

    def scored(self, first: Any, second: Any, score: Any) -> None:
        if self._open:
            self._open[-1].scores[first.get_first_name(), second.get_first_name()] = score

    def fused(self, first: Any, second: Any, into: Any) -> None:
        if self._open:
            _accept(self._open[-1], first, second, into)

    def ends(self, nodes: Any) -> None:
        log = self._open.pop()
        if nodes is not None:
            log.nodes = nodes
            self._receive(log)


def _accept(log: FusionLog, node1: Any, node2: Any, fused: Any) -> None:
    try:
        score = _score(log, node1.get_operation_names(), node2.get_operation_names())
        log.accepted.append(Accepted(_side(node1), _side(node2), kind_of(node1, node2), score, fused.get_name()))
    except Exception:  # noqa: BLE001  runs inside Inductor, which must not notice
        log.accepted.append(Accepted(None, None, "", "", ""))


def _score(log: FusionLog, first: Any, second: Any) -> str:
    """The score of a pair; parts of it may have been fused since it was given."""
    for names in islice(product(first, second), _MOST):
        score = log.scores.get(names, log.scores.get(names[::-1]))
        if score is not None:
            return score_text(score)
    return ""


def score_text(score: Any) -> str:
    """``memory_score=128, proximity_score=-1``: what is not zero of a ``FusionScore``, or of the older tuple."""
    fields = getattr(score, "__dataclass_fields__", None)
    if fields is None:
        return str(score)
    return ", ".join(f"{name}={value}" for name in fields if (value := getattr(score, name)) or name == "memory_score")


def kind_of(first: Any, second: Any) -> str:
    """The kind of a fusion: ``template``, ``vertical`` where one reads what the other writes, else ``horizontal``."""
    if first.is_template() or second.is_template():
        return "template"
    read = {dep.name for dep in second.read_writes.reads}
    return "vertical" if read & set(first.get_buffer_names()) else "horizontal"


def stage_data(log: FusionLog) -> dict[str, Any]:
    """The data of the stage ``fusion``.  Runs inside Inductor, while the schedule is alive."""
    refused = list(_refused(log))
    return {
        "fused": [
            {"first": pair.first, "second": pair.second, "kind": pair.kind, "score": pair.score, "into": pair.into}
            for pair in log.accepted
        ],
        "refused": refused,
        "refusals": sum(log.refusals.values()),
        "reasons": dict(log.refusals.most_common(_MOST_REASONS)),
    }


def _refused(log: FusionLog) -> Iterator[dict[str, Any]]:
    """Pairs of nodes of the final schedule that touch one buffer and were refused at some time."""
    sides: dict[int, dict[str, Any]] = {}
    refused: dict[tuple[int, int], dict[str, Any]] = {}
    for names, why, first, second, buffers in _touching(log):
        if len(refused) >= _MOST:
            break
        exact = names == {first.get_name(), second.get_name()}
        # What was said of the nodes as they ended counts more than of their parts.
        if exact or (id(first), id(second)) not in refused:
            refused[id(first), id(second)] = {
                "first": sides.setdefault(id(first), sides.get(id(first)) or _side(first)),
                "second": sides.setdefault(id(second), sides.get(id(second)) or _side(second)),
                "kind": kind_of(first, second),
                "reason": reason_text(*why),
                "buffers": sorted(buffers),
            }
    yield from refused.values()
    yield from islice(_of_libraries(log, sides), _MOST - len(refused))


def _of_libraries(log: FusionLog, sides: dict[int, dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Each pair of a call into a library and what it reads from, or what reads from it."""
    writer = {name: node for node in log.nodes for name in node.get_buffer_names()}
    for node in log.nodes:
        read: dict[int, tuple[Any, set[str]]] = {}
        for dep in node.read_writes.reads:
            producer = writer.get(dep.name)
            if producer is not None and producer is not node and node.is_extern() | producer.is_extern():
                read.setdefault(id(producer), (producer, set()))[1].add(dep.name)
        for producer, buffers in read.values():
            first, second = (sides.setdefault(id(one), sides.get(id(one)) or _side(one)) for one in (producer, node))
            yield {
                "first": first, "second": second, "kind": "library", "reason": LIBRARY_REASON, "buffers": sorted(buffers),
            }  # fmt: skip


def _touching(log: FusionLog) -> Iterator[tuple[set[str], Any, Any, Any, set[str]]]:
    """Each refusal of two nodes that touch one buffer: their names, the reason, the nodes and the buffers."""
    home = {name: node for node in log.nodes for name in node.get_operation_names()}
    touches = {
        id(node): {dep.name for dep in (*node.read_writes.reads, *node.read_writes.writes)} for node in log.nodes
    }
    by_name = {name: home[part] for name in {n for pair in log.reasons for n in pair} if (part := _first(name, home))}
    for (name1, name2), why in log.reasons.items():
        first, second = by_name.get(name1), by_name.get(name2)
        if first is None or second is None or first is second:
            continue
        if shared := touches[id(first)] & touches[id(second)]:
            if set(second.get_buffer_names()) & {dep.name for dep in first.read_writes.reads}:
                first, second = second, first
            yield {name1, name2}, why, first, second, shared


def _first(name: str, home: dict[str, Any]) -> str | None:
    """One of the nodes before fusion that a name of Inductor's (``op0_op1``) stands for."""
    if name in home:
        return name
    part = name.partition("_")[0]
    return part if part in home else None


def _side(node: Any) -> dict[str, Any]:
    parts = [part.node for part in node.get_nodes() if part.node is not None]
    origins = sorted({fx for part in parts for fx in getattr(part, "origins", ())})
    return {"nodes": sorted(node.get_operation_names(), key=_by_number), "origins": [fx.name for fx in origins]}


def _by_number(name: str) -> tuple[int, str]:
    digits = "".join(letter for letter in name if letter.isdigit())
    return (int(digits) if digits else 0, name)


def stage_text(data: dict[str, Any]) -> str:
    """The stage ``fusion`` for people."""
    lines = [f"# {len(data['fused'])} fused"]
    for pair in data["fused"]:
        score = f"  ({pair['score']})" if pair["score"] else ""
        lines.append(f"{_named(pair['first'])}  +  {_named(pair['second'])}: {pair['kind']}{score}")
    lines += ["", f"# {len(data['refused'])} kept apart although they share a buffer"]
    for pair in data["refused"]:
        lines.append(
            f"{_named(pair['first'])}  |  {_named(pair['second'])}: {told(pair['reason'])}  ({', '.join(pair['buffers'])})"
        )
    lines += ["", f"# {data['refusals']} refusals in all rounds, by reason"]
    lines += [f"{count:6}  {reason}" for reason, count in data["reasons"].items()]
    return "\n".join(lines) + "\n"


def _named(side: dict[str, Any]) -> str:
    origins = side["origins"]
    more = f", … {len(origins) - 4} more" if len(origins) > 4 else ""
    return f"{'+'.join(side['nodes'])} [{', '.join(origins[:4])}{more}]"
