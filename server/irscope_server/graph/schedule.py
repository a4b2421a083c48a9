"""Inductor's schedule as a graph: what it computes before fusion, what it fused, and what it left apart.

A node is a node of the schedule before fusion, also in the stages after it, in which the fused ones are groups of such
nodes.  An edge leads from what writes a buffer to what reads it.  Operation, module and the user's line of a node are
those of the last node of the post-grad graph that it computes; the lines of the others are its further ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from irscope_server.graph.answers import FusionDecision, GraphColumns
from irscope_server.graph.columns import Table, Tables, originals_of
from irscope_server.graph.targets import SHORT

_LAYOUT = re.compile(
    r"^ *(?P<buffer>\w+?)(?:_layout|\.layout) = \w*Layout\w*\('(?P<device>[^']*)', torch\.(?P<dtype>\w+), "
    r"size=\[(?P<size>[^\]]*)\], stride=\[(?P<stride>[^\]]*)\]",
    re.MULTILINE,
)
_HEAD = re.compile(r"^(\w+): \w*(?:SchedulerNode|KernelNode)\b")
_UNMET = re.compile(
    r"^(?P<name>\w+)\.unmet_dependencies =(?P<rest>.*?)^\1\.met_dependencies =", re.MULTILINE | re.DOTALL
)
_DEPENDENCY = re.compile(r"(?:MemoryDep|StarDep|WeakDep)\((?:name=)?'(\w+)'")
_NAME = re.compile(r"\w+")
_LIBRARY = ("Extern", "Template")
"""In the kinds of nodes that do products such as those of matrices; what others compute has no formula."""

_PRINTED = (("details", "detail"), ("dtypes", "dtype"), ("devices", "device"))

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Schedule:
    """What is known about one schedule.

    Args:
        text: Text of the stage that is shown.
        described: A text that has the layouts of the buffers, and what the nodes wait for.
        before, after: Nodes of the schedule before and after fusion, as `irscope.pipeline_captures.inductor.scheduler`
            has them.
        is_fused: Whether the stage is one after fusion, in which nodes belong to groups.
        fusion: Data of the stage ``fusion``.
        origins: Columns of the post-grad graph, as `graph_known.known_columns` gives them; empty if they are not known.
    """

    text: str
    described: str
    before: list[Row]
    after: list[Row]
    is_fused: bool
    fusion: Mapping[str, Any] = field(default_factory=dict)
    origins: Mapping[str, Any] = field(default_factory=dict)


def schedule_names(schedule: Schedule) -> list[str]:
    """The nodes that are drawn, in their order: first the buffers that no node writes, then the schedule's."""
    rows = _rows(schedule)
    return [*_read_only(rows), *rows]


def schedule_columns(schedule: Schedule) -> GraphColumns:
    """Raises ValueError if nothing is known about the schedule's nodes."""
    rows = _rows(schedule)
    if not rows:
        raise ValueError("only the text of this schedule's nodes was kept")
    read_only = _read_only(rows)
    names = [*read_only, *rows]
    number = {name: at for at, name in enumerate(names)}
    origins = _Origins(schedule.origins)
    layouts = {match["buffer"]: match for match in _LAYOUT.finditer(schedule.described)}
    fused = _fused(schedule)
    spans = _spans(schedule.text, number, fused)
    group_of = _groups(fused) if schedule.is_fused else {}

    tables, groups = Tables(), Table()
    for module in schedule.origins.get("modules", []):
        tables.modules((tuple(module["path"]), module["type"]))
    nodes: dict[str, list[Any]] = {
        key: []
        for key in (
            "name", "kind", "op", "original", "detail", "dtype", "device", "bytes", "moved", "flops", "module",
            "backward", "line", "spans", "file", "originLine", "places", "group",
        )
    }  # fmt: skip
    for name in names:
        row = rows.get(name)
        buffer = name if row is None else next((written for written, _ in row["writes"]), "")
        detail, dtype, device = _printed(layouts.get(buffer)) or origins.printed(buffer)
        _append(
            nodes,
            name=name,
            detail=tables.details(detail),
            dtype=tables.dtypes(dtype),
            device=tables.devices(device if row is None else str(row["device"])),
            spans=spans[name],
            line=next(iter(spans[name]), 0),
            backward=0,
            group=groups(group_of.get(name)),
        )
        _append(nodes, **(_read(read_only[name], tables) if row is None else _computed(row, origins, tables)))
    edges = list(_edges(schedule, rows, number))
    kinds = ["placeholder"] * len(read_only) + ["call"] * len(rows)
    nodes["home"] = tables.homes(nodes, kinds, [True] * len(names), edges)
    return {
        **tables.graph(nodes, edges, schedule.origins.get("files", [])),
        "groups": [{"name": name, "type": kind} for name, kind in groups.entries],
        "decisions": list(_decisions(schedule.fusion, number)),
    }


def _printed(layout: re.Match[str] | None) -> tuple[str, str, str] | None:
    """Type, dtype and device of a buffer by its layout."""
    if layout is None:
        return None
    dtype = SHORT.get(layout["dtype"], layout["dtype"])
    return f"{dtype}[{layout['size']}][{layout['stride']}]{layout['device']}", dtype, layout["device"]


def _read(size: int, tables: Tables) -> Row:
    """A row of a buffer that no node writes."""
    return {
        "kind": 0, "original": -1, "op": tables.ops("placeholder"), "bytes": size, "module": -1, "file": -1,
        "originLine": -1, "places": [], "moved": None, "flops": None,
    }  # fmt: skip


def _computed(row: Row, origins: _Origins, tables: Tables) -> Row:
    """What a node computes, and where that is from."""
    computed = origins.numbers(row["origins"])
    last = computed[-1] if computed else -1
    file, line = origins.place(last)
    places = dict.fromkeys(place for node in computed if (place := origins.place(node))[0] >= 0)
    places.pop((file, line), None)
    return {
        "kind": 2,
        "op": tables.ops(origins.op(last) or str(row["kind"])),
        "original": tables.originals(origins.originals(computed)),
        "bytes": sum(size for _, size in row["writes"]),
        "module": origins.module(last),
        "file": file,
        "originLine": line,
        "places": [part for place in places for part in place],
        "moved": sum(size for _, size in [*row["reads"], *row["writes"]]),
        "flops": origins.flops(computed) if any(word in str(row["kind"]) for word in _LIBRARY) else None,
    }


def _append(nodes: dict[str, list[Any]], **values: Any) -> None:
    for key, value in values.items():
        nodes[key].append(value)


def _rows(schedule: Schedule) -> dict[str, Row]:
    """The nodes before fusion; those that only the schedule after it has stand for themselves."""
    rows = {str(row["name"]): row for row in schedule.before}
    for row in schedule.after:
        if not any(part in rows for part in row["parts"]):
            rows[str(row["name"])] = row
    return rows


def _read_only(rows: Mapping[str, Row]) -> dict[str, int]:
    """Buffers that no node writes, with their bytes: inputs, weights and constants."""
    written = {buffer for row in rows.values() for buffer, _ in row["writes"]}
    found: dict[str, int] = {}
    for row in rows.values():
        for buffer, size in row["reads"]:
            if buffer not in written:
                found[buffer] = max(size, found.get(buffer, 0))  # some read only a part of it
    return found


def _fused(schedule: Schedule) -> dict[str, Row]:
    """The nodes after fusion that were fused of several, by name."""
    return {str(row["name"]): row for row in schedule.after if len(row["parts"]) > 1}


def _groups(fused: Mapping[str, Row]) -> dict[str, tuple[str, str]]:
    """For each node that was fused with others: the name and the kind of the fused node."""
    return {str(part): (name, str(row["kind"])) for name, row in fused.items() for part in row["parts"]}


def _spans(text: str, names: Mapping[str, int], fused: Mapping[str, Row]) -> dict[str, list[int]]:
    """Where a text describes each node: 0-based first and last line, of its own description first of all.

    A description goes on to the next one; what is said of a fused node is said of all its parts.  In a text without
    descriptions (the fusion decisions) every line describes the nodes that it names.
    """
    rows = text.split("\n")
    heads = [
        (number, head[1])
        for number, row in enumerate(rows)
        if (head := _HEAD.match(row)) and (head[1] in names or head[1] in fused)
    ]
    own: dict[str, list[int]] = {}
    others: dict[str, list[int]] = {}
    for at, (number, name) in enumerate(heads):
        last = (heads[at + 1][0] if at + 1 < len(heads) else len(rows)) - 1
        own.setdefault(name, []).extend((number, last))
        for part in fused[name]["parts"] if name in fused else ():
            others.setdefault(part, []).extend((number, last))
    if not heads:
        for number, row in enumerate(rows):
            for word in dict.fromkeys(_NAME.findall(row)):
                if word in names:
                    own.setdefault(word, []).extend((number, number))
    return {name: [*own.get(name, ()), *others.get(name, ())] for name in names}


def _edges(schedule: Schedule, rows: Mapping[str, Row], number: Mapping[str, int]) -> Iterator[tuple[int, int]]:
    """Each once: from what writes a buffer, or the buffer itself where nothing writes it, to what waits for it.

    What is read is known; what only has to come later, because it overwrites a buffer, is in the text.
    """
    writer = {buffer: name for name, row in rows.items() for buffer, _ in row["writes"]}
    waits: dict[str, dict[str, None]] = {
        name: {buffer: None for buffer, _ in row["reads"]} for name, row in rows.items()
    }
    for match in _UNMET.finditer(schedule.described):
        if match["name"] in waits:
            waits[match["name"]].update(dict.fromkeys(_DEPENDENCY.findall(match["rest"])))
    for name, buffers in waits.items():
        sources = dict.fromkeys(writer.get(buffer, buffer) for buffer in buffers)
        for source in sources:
            if source != name and source in number:
                yield number[source], number[name]


def _decisions(fusion: Mapping[str, Any], number: Mapping[str, int]) -> Iterator[FusionDecision]:
    """What Inductor decided on pairs of nodes; of fused ones on each step."""
    for fused, rows in ((True, fusion.get("fused", ())), (False, fusion.get("refused", ()))):
        for row in rows:
            first, second = (
                [number[name] for name in row[side]["nodes"] if name in number] for side in ("first", "second")
            )
            if first and second:
                yield {
                    "first": first,
                    "second": second,
                    "fused": fused,
                    "kind": str(row["kind"]),
                    "why": str(row["score"] if fused else row["reason"]),
                }


class _Origins:
    """Facts of the post-grad graph's nodes by their numbers; -1 is not a node."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self._columns = columns
        self._nodes: Mapping[str, Any] = columns.get("nodes", {})
        self._number = {name: at for at, name in enumerate(self._nodes.get("name", ()))}

    def numbers(self, names: list[str]) -> list[int]:
        """In the order of the graph."""
        return sorted(self._number[name] for name in names if name in self._number)

    def printed(self, name: str) -> tuple[str, str, str]:
        """Type, dtype and device of an input, which is called the same in both."""
        at = self._number.get(name)
        if at is None:
            return "", "", ""
        found = [(table, self._nodes[column][at]) for table, column in _PRINTED]
        detail, dtype, device = (self._columns[table][number] if number >= 0 else "" for table, number in found)
        return detail, dtype, device

    def op(self, at: int) -> str:
        return str(self._columns["ops"][self._nodes["op"][at]]) if at >= 0 else ""

    def originals(self, numbers: list[int]) -> tuple[str, ...] | None:
        """All that is computed in a node of the schedule, and what that was made from."""
        found = {}
        for at in numbers:
            original = self._nodes["original"][at]
            found.update(dict.fromkeys([self.op(at), *(self._columns["originals"][original] if original >= 0 else ())]))
        return originals_of(self.op(numbers[-1]), found) if numbers else None

    def module(self, at: int) -> int:
        return int(self._nodes["module"][at]) if at >= 0 else -1

    def place(self, at: int) -> tuple[int, int]:
        """The number of a file, and the line."""
        return (self._nodes["file"][at], self._nodes["originLine"][at]) if at >= 0 else (-1, -1)

    def flops(self, numbers: list[int]) -> int | None:
        known = [self._nodes["flops"][at] for at in numbers if self._nodes["flops"][at]]
        return sum(known) if known else None
