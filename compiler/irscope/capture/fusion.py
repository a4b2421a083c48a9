"""What Inductor's scheduler fused, and what not, and why.

The data of the stage ``fusion`` is ``{"fused": […], "refused": […], "refusals": n, "reasons": {…}}``:

=============  =========================================================================================================
``fused``      in the order in which it happened: ``first`` and ``second`` (each ``{"nodes": names before fusion,
               "origins": names of post-grad nodes}``), ``kind`` (``vertical``: the second reads what the first writes;
               ``horizontal``: they share what they read; ``template``), ``score`` (text, highest fused first; empty
               where none was asked for), ``into`` (name of the fused node)
``refused``    pairs that ended in two kernels although one reads what the other writes or both touch one buffer:
               ``first``, ``second`` (likewise), ``kind``, ``reason`` (Inductor's last word on them, not the one that
               they were too far apart by then), ``buffers`` (what they share)
``refusals``   how often Inductor refused a pair in all rounds, those that share nothing included
``reasons``    how often by reason
=============  =========================================================================================================
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice, product
from typing import Any

from irscope.capture.hooks import Hook, Undo, replace_attribute

Reasons = dict[tuple[str, str], tuple[str, tuple[Any, ...]]]
"""The last reason for not fusing two nodes, with the values that go into its text, by their names."""
_MOST = 2000
_MOST_REASONS = 50


@dataclass
class Accepted:
    first: Any
    second: Any
    kind: str
    score: str
    into: str


@dataclass
class FusionLog:
    """What one schedule's fusion came to.

    Parameters
    ----------
    nodes
        The scheduler's nodes after fusion.
    reasons
        Of every pair that was refused; of one that was refused again the last.
    refusals
        How often each reason was given.
    """

    nodes: Any = ()
    accepted: list[Accepted] = field(default_factory=list)
    reasons: Reasons = field(default_factory=dict)
    refusals: Counter[str] = field(default_factory=Counter)
    scores: dict[tuple[str, str], Any] = field(default_factory=dict)


def hooks(receive: Callable[[FusionLog], None]) -> list[Hook]:
    """Reports each schedule as soon as its nodes are fused.  The receiver must not raise."""
    running: list[FusionLog] = []

    def watch(scheduler: Any) -> Undo:
        cls, refuse = scheduler.Scheduler, scheduler.WhyNoFuse.__call__
        fuse, score_key = cls.fuse_nodes, cls.score_fusion_key

        def refused(self: Any, reason: str, *args: Any) -> None:
            if running:
                running[-1].reasons[self.name1, self.name2] = (reason, args)
                running[-1].refusals[reason] += 1
            refuse(self, reason, *args)

        def score_fusion_key(self: Any, nodes: Any) -> Any:
            score = score_key(self, nodes)
            if running:
                running[-1].scores[nodes[0].get_first_name(), nodes[1].get_first_name()] = score
            return score

        def fuse_nodes(self: Any, nodes: Any) -> Any:
            log = FusionLog()
            running.append(log)
            try:
                log.nodes = fuse(self, nodes)
            finally:
                running.pop()
            receive(log)
            return log.nodes

        undo = [
            replace_attribute(scheduler.WhyNoFuse, "__call__", refused),
            replace_attribute(cls, "score_fusion_key", score_fusion_key),
            replace_attribute(cls, "fuse_nodes", fuse_nodes),
        ]

        def restore() -> None:
            for step in undo:
                step()

        return restore

    def watch_pairs(scheduler: Any) -> Undo:
        cls = scheduler.Scheduler
        if not hasattr(cls, "fuse_two_nodes"):
            return _watch_backend(cls, lambda *pair: _accept(running[-1], *pair) if running else None)
        fuse_two = cls.fuse_two_nodes

        def fuse_two_nodes(self: Any, node1: Any, node2: Any, *args: Any, **kwargs: Any) -> Any:
            fused = fuse_two(self, node1, node2, *args, **kwargs)
            if running:
                _accept(running[-1], node1, node2, fused)
            return fused

        return replace_attribute(cls, "fuse_two_nodes", fuse_two_nodes)

    module = "torch._inductor.scheduler"
    return [
        Hook("why kernels were not fused", module, "2.9 to 2.15", watch),
        Hook("which kernels were fused", module, "2.9 to 2.15", watch_pairs),
    ]


def _watch_backend(cls: Any, accept: Callable[[Any, Any, Any], None]) -> Undo:
    """In torch 2.9 the function that fuses two nodes is a local one, which calls ``self.get_backend(device).fuse``."""
    get = cls.get_backend

    class Backend:
        """A back end as that function uses it."""

        def __init__(self, real: Any) -> None:
            self._real = real

        def __getattr__(self, name: str) -> Any:
            return getattr(self._real, name)

        def fuse(self, node1: Any, node2: Any) -> Any:
            fused = self._real.fuse(node1, node2)
            accept(node1, node2, fused)
            return fused

    def get_backend(self: Any, device: Any) -> Any:
        backend = get(self, device)
        return Backend(backend) if sys._getframe(1).f_code.co_name == "fuse_two_nodes" else backend

    return replace_attribute(cls, "get_backend", get_backend)


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
    home = {name: node for node in log.nodes for name in node.get_operation_names()}
    touches = {
        id(node): {dep.name for dep in (*node.read_writes.reads, *node.read_writes.writes)} for node in log.nodes
    }
    sides: dict[int, dict[str, Any]] = {}
    found: dict[tuple[int, int], dict[str, Any]] = {}
    by_name = {name: home[part] for name in {n for pair in log.reasons for n in pair} if (part := _first(name, home))}
    for (name1, name2), why in log.reasons.items():
        first, second = by_name.get(name1), by_name.get(name2)
        if first is None or second is None or first is second or len(found) >= _MOST:
            continue
        shared = touches[id(first)] & touches[id(second)]
        if not shared:
            continue
        if set(second.get_buffer_names()) & {dep.name for dep in first.read_writes.reads}:
            first, second = second, first
        exact = {name1, name2} == {first.get_name(), second.get_name()}
        known = found.get((id(first), id(second)))
        if known is None or exact:  # what was said of the nodes as they ended counts more than of their parts
            found[id(first), id(second)] = {
                "first": sides.setdefault(id(first), sides.get(id(first)) or _side(first)),
                "second": sides.setdefault(id(second), sides.get(id(second)) or _side(second)),
                "kind": kind_of(first, second),
                "reason": reason_text(*why),
                "buffers": sorted(shared),
            }
    yield from found.values()


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


def reason_text(reason: str, args: tuple[Any, ...]) -> str:
    """Inductor's reason, with what it names."""
    try:
        return (reason % args).strip().rstrip(".")
    except (TypeError, ValueError):
        return reason


def stage_text(data: dict[str, Any]) -> str:
    """The stage ``fusion`` for people."""
    lines = [f"# {len(data['fused'])} fused"]
    for pair in data["fused"]:
        score = f"  ({pair['score']})" if pair["score"] else ""
        lines.append(f"{_named(pair['first'])}  +  {_named(pair['second'])}: {pair['kind']}{score}")
    lines += ["", f"# {len(data['refused'])} kept apart although they share a buffer"]
    for pair in data["refused"]:
        lines.append(
            f"{_named(pair['first'])}  |  {_named(pair['second'])}: {pair['reason']}  ({', '.join(pair['buffers'])})"
        )
    lines += ["", f"# {data['refusals']} refusals in all rounds, by reason"]
    lines += [f"{count:6}  {reason}" for reason, count in data["reasons"].items()]
    return "\n".join(lines) + "\n"


def _named(side: dict[str, Any]) -> str:
    origins = side["origins"]
    more = f", … {len(origins) - 4} more" if len(origins) > 4 else ""
    return f"{'+'.join(side['nodes'])} [{', '.join(origins[:4])}{more}]"
