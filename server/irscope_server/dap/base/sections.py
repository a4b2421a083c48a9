"""A stage as a debugger walks through it: its spots, and from names, lines and origins to spots."""

from __future__ import annotations

import bisect
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from irscope.ir.graphs import GraphNode, parse_graph
from irscope.ir.nodes import NodeFacts, facts_of
from irscope.pipelines.registry import role_of, stage_kind
from irscope.protocol import Compile, Finding, Kernel, Origin, Report, StageRef
from irscope.provenance import Element, Provenance
from irscope.store.store import Store
from irscope.values.facts import Facts
from irscope.vocabulary.stages import Role

from irscope_server.base.words import stage_title

SOURCE = "source"
"""The name of the stage that is the user's own code."""

DAMAGED = (LookupError, TypeError, ValueError, AttributeError)
"""What reading a stage's data raises where it is not of the form that it should have: a store from elsewhere may hold
anything.  Such a stage is walked line by line."""


@dataclass(frozen=True)
class Spot:
    """A place to stop at in a stage: a node, a scheduler node, a call of a kernel, a line.

    Args:
        name: The node's or the kernel's name; empty for a bare line.
        file: Path, for a line of the user's code and an instruction of the symbolic trace; empty in every other stage.
        element: What provenance knows it as; None for a stage that is not on the way to machine code.
    """

    line: int
    name: str = ""
    file: str = ""
    findings: tuple[Finding, ...] = ()
    element: Element | None = None


class Section:
    """One stage of one compile.  It is read on request only."""

    is_source = False
    called_from: Sequence[Origin] = ()
    """The lines that call what begins with this stage: the compile, or its backward."""

    def __init__(self, store: Store, report: Report, provenance: Provenance, compile: Compile, stage: StageRef) -> None:
        self._store, self._report, self._provenance = store, report, provenance
        self.compile, self.stage = compile, stage

    def _of(self, other: Section, stage: StageRef) -> None:
        """Becomes a part of another stage of the same compile."""
        Section.__init__(self, other._store, other._report, other._provenance, other.compile, stage)

    @property
    def document(self) -> Section:
        """The stage whose text is shown."""
        return self

    def blocks(self, spot: int) -> Sequence[Facts]:
        """Scopes of a statement of a kernel, each named by its kind; none in any other stage."""
        return ()

    def marked(self, stage: str, spot: int) -> Sequence[int]:
        """The spots at which a breakpoint on a spot of a stage stops."""
        return (spot,) if self.stage.id == stage and spot >= 0 else ()

    @property
    def title(self) -> str:
        """The title of the stage, for people."""
        return stage_title(self.stage)

    @cached_property
    def text(self) -> str:
        """The text of the stage, read from the store.  Raises LookupError if there is none."""
        return self._store.stage_text(self._report.run, self.stage.id)

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the text; line 1 has index 0."""
        return self.text.split("\n")

    @cached_property
    def nodes(self) -> Mapping[str, GraphNode]:
        """The nodes of a graph stage by name, in order; empty for any other."""
        if not stage_kind(self.stage.name).is_graph:
            return {}
        try:
            return {node.name: node for node in parse_graph(self.text).nodes}
        except ValueError:
            return {}

    @cached_property
    def _data(self) -> Any:
        return self._store.stage_data(self._report.run, self.stage.id)

    @cached_property
    def facts(self) -> Mapping[str, NodeFacts]:
        """What the capture kept of the nodes beside the text, by name; empty if it kept nothing."""
        data = self._data if stage_kind(self.stage.name).is_graph else None
        if isinstance(data, dict) and "nodes" not in data:
            data = data.get("new")  # a version that a pass made keeps what is new in it
        try:
            return {node.name: node for node in facts_of(data)}
        except DAMAGED:
            return {}

    @property
    def changed_names(self) -> frozenset[str]:
        """The nodes that a pass added or changed, of a version that a pass made."""
        data = self._data if self.stage.passed else None
        if not isinstance(data, dict):
            return frozenset()
        parts = [data.get(key) for key in ("added", "changed")]
        return frozenset(str(name) for part in parts if isinstance(part, list) for name in part)

    @cached_property
    def users(self) -> Mapping[str, tuple[str, ...]]:
        """Who uses each node, by name."""
        users: dict[str, list[str]] = {name: [] for name in self.nodes}
        for node in self.nodes.values():
            for used in node.inputs:
                users[used].append(node.name)
        return {name: tuple(found) for name, found in users.items()}

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels whose source this stage holds, or (output code) that only it calls."""
        return tuple(kernel for kernel in self._report.kernels if kernel.stage == self.stage.id)

    @cached_property
    def spots(self) -> Sequence[Spot]:
        """The places to stop at, in the order of the text; never empty."""
        try:
            elements = self._provenance.elements(self.stage.id)
        except DAMAGED:
            elements = ()
        found = [
            Spot(each.line, _name(each.name), element=each)
            for each in elements
            if each.end_line > each.line or self.lines[each.line - 1].strip()
        ]
        if not found:
            found = [Spot(number) for number, line in enumerate(self.lines, 1) if line.strip()]
        if role_of(self.stage.name) is Role.KERNEL and found:
            first = found[0]
            found[0] = Spot(first.line, self.stage.id.rpartition("/")[2], element=first.element)
        return found or [Spot(1)]

    def first_spot(self) -> Spot:
        """The spot at which a walk through the stage begins."""
        return self.spots[0]

    # --- finding spots ------------------------------------------------------------------------------------------------

    @cached_property
    def _starts(self) -> list[int]:
        return [spot.line for spot in self.spots]

    def spot_at(self, line: int) -> int:
        """The spot on a line, or whose lines hold it; else the next one below it, or the last of all."""
        at = bisect.bisect_left(self._starts, line)
        if at < len(self._starts) and self._starts[at] == line:
            return at
        if at > 0 and (before := self.spots[at - 1].element) is not None and before.end_line >= line:
            return at - 1
        return min(at, len(self.spots) - 1)

    def document_line(self, spot: int) -> int:
        """The line of the stage's own text that a spot stands for."""
        return self.spots[spot].line

    @cached_property
    def by_name(self) -> Mapping[str, int]:
        """From the name of a node or kernel to the first spot that has it."""
        return {spot.name: index for index, spot in reversed(list(enumerate(self.spots))) if spot.name}

    @cached_property
    def by_element(self) -> Mapping[str, int]:
        """From the name of an element to its spot."""
        return {spot.element.name: index for index, spot in enumerate(self.spots) if spot.element is not None}

    def origins(self, spot: int) -> tuple[Origin, ...]:
        """The user's lines that a spot comes from: of a node the innermost first, then the lines that called it."""
        name = self.spots[spot].name
        node, facts = self.nodes.get(name), self.facts.get(name)
        if node is not None:
            found = {Origin(frame.file, frame.line): None for frame in reversed(facts.stack)} if facts else {}
            return tuple(found) or ((node.origin,) if node.origin is not None else ())
        element = self.spots[spot].element
        if name and self.kernels and role_of(self.stage.name) is Role.KERNEL:
            return tuple(dict.fromkeys(origin for kernel in self.kernels for origin in kernel.origins))
        try:
            return self._provenance.origins(element) if name and element is not None else ()
        except DAMAGED:
            return ()

    @cached_property
    def by_origin(self) -> Mapping[Origin, Sequence[int]]:
        """The spots that come from each line of the user's files, in order; bare lines are passed over."""
        found: dict[Origin, list[int]] = {}
        for index, spot in enumerate(self.spots):
            if spot.name:
                for origin in self.origins(index):
                    found.setdefault(Origin(real(origin.file), origin.line), []).append(index)
        return found

    def stops_of_line(self, file: str, line: int) -> Sequence[int]:
        """The spots at which a breakpoint on a line stops: what came from it, else the beginning of what it calls."""
        wanted = Origin(real(file), line)
        if spots := self.by_origin.get(wanted):
            return spots
        lines = {(caller.file, caller.line) for caller in self.called_from}
        if role_of(self.stage.name) is Role.KERNEL:  # its origins are the user's alone
            lines |= {(part.file, number) for kernel in self.kernels for part in kernel.lines for number in part.lines}
        return (0,) if any(Origin(real(path), number) == wanted for path, number in lines) else ()

    @cached_property
    def by_call(self) -> Mapping[str, Sequence[int]]:
        """The spots by each name that people give to what is called there: ``aten.mm.default``, ``aten.mm``, ``mm``."""
        found: dict[str, list[int]] = {}
        for index, spot in enumerate(self.spots):
            node = self.nodes.get(spot.name)
            target = spot.name if node is None else node.target if node.op == "call" else ""
            for name in call_names(target):
                found.setdefault(name, []).append(index)
        return found


class SourceSection(Section):
    """The user's own code, as far as it was traced: the function, then each line in the order of the traced graph.

    A line that was traced again later (in a loop) is there again.
    """

    is_source = True
    text = ""
    nodes: Mapping[str, GraphNode] = {}
    facts: Mapping[str, NodeFacts] = {}
    by_call: Mapping[str, Sequence[int]] = {}
    by_name: Mapping[str, int] = {}

    def __init__(
        self,
        store: Store,
        report: Report,
        provenance: Provenance,
        compile: Compile,
        graph: Section | None,
        findings: Sequence[Finding],
    ) -> None:
        super().__init__(store, report, provenance, compile, StageRef(f"{compile.id}/{SOURCE}", SOURCE, "python", 0))
        self.graph, self.findings = graph, findings

    @property
    def title(self) -> str:
        """Always ``Source``."""
        return "Source"

    @cached_property
    def _traced(self) -> list[tuple[Origin, int]]:
        """Each line in traced order, with the first spot of the graph that came from it; -1: none did."""
        found: list[tuple[Origin, int]] = []
        for index, spot in enumerate(self.graph.spots if self.graph is not None else ()):
            node = self.graph.nodes.get(spot.name) if self.graph is not None else None
            origin = node.origin if node is not None else None
            if origin is not None and (not found or found[-1][0] != origin):
                found.append((origin, index))
        for finding in self.findings:
            where = Origin(finding.file, finding.range.start.line)
            lines = [origin for origin, _ in found]
            if where not in lines and where != Origin(self.compile.file, self.compile.line):
                above = [at for at, each in enumerate(lines) if each.file == where.file and each.line < where.line]
                found.insert(above[-1] + 1 if above else len(found), (where, -1))
        return found

    @cached_property
    def spots(self) -> Sequence[Spot]:
        """The function, then one spot for each traced line; findings are at the first spot of their line only."""
        seen: set[Origin] = set()
        spots = [self.first_spot()]
        for origin, _ in self._traced:
            findings = () if origin in seen else self._findings_at(origin)
            spots.append(
                Spot(origin.line, "", origin.file, findings, self._provenance.source(origin.file, origin.line))
            )
            seen.add(origin)
        return spots

    def first_spot(self) -> Spot:
        """The line at which the compiled function begins, with the findings there."""
        compile = self.compile
        where = Origin(compile.file, compile.line)
        return Spot(compile.line, compile.title, compile.file, self._findings_at(where))

    def _findings_at(self, origin: Origin) -> tuple[Finding, ...]:
        return tuple(f for f in self.findings if f.file == origin.file and f.range.start.line == origin.line)

    def leads_to(self, spot: int) -> int | None:
        """The spot of the first graph that a line was traced into; None for a line that has none."""
        index = self._traced[spot - 1][1] if spot > 0 else -1
        return index if index >= 0 else None

    def all_traced_into(self, spot: int) -> range:
        """The spots of the first graph that a line was traced into before the next line was; none for one without."""
        first = self.leads_to(spot)
        if first is None or self.graph is None:
            return range(0)
        later = (index for _, index in self._traced[spot:] if index >= 0)
        return range(first, next(later, len(self.graph.spots)))

    def depth(self, spot: int) -> int | None:
        """How many calls deep a line is, the compiled function itself 1; None if that was not kept."""
        if spot == 0:
            return 1
        index = self.leads_to(spot)
        facts = None if index is None or self.graph is None else self.graph.facts.get(self.graph.spots[index].name)
        if facts is None:
            return None
        line, stack = self._traced[spot - 1][0], facts.stack
        # The operation may be that of a library function that the line calls.
        own = (at for at in range(len(stack), 0, -1) if Origin(stack[at - 1].file, stack[at - 1].line) == line)
        return next(own, len(stack)) or None

    def traced_into(self, graph_spot: int) -> int | None:
        """The opposite: the spot whose line gave a node of the first graph."""
        node = self.graph.nodes.get(self.graph.spots[graph_spot].name) if self.graph is not None else None
        before = [(index, at) for at, (_, index) in enumerate(self._traced) if 0 <= index <= graph_spot]
        return max(before)[1] + 1 if before and node is not None and node.origin is not None else None

    def origins(self, spot: int) -> tuple[Origin, ...]:
        """The line of the user's code that the spot is; always exactly one."""
        return (Origin(self.spots[spot].file, self.spots[spot].line),)

    @cached_property
    def by_origin(self) -> Mapping[Origin, Sequence[int]]:
        """From a line of the user's code to its spots, in the order of the trace; files by their real path."""
        found: dict[Origin, list[int]] = {}
        for index, spot in enumerate(self.spots):
            found.setdefault(Origin(real(spot.file), spot.line), []).append(index)
        return found

    @cached_property
    def _functions(self) -> Mapping[Origin, str]:
        nodes = self.graph.facts.values() if self.graph is not None else ()
        return {Origin(frame.file, frame.line): frame.function for node in nodes for frame in node.stack}

    def function_at(self, origin: Origin) -> str:
        """The function that a traced line is in; empty if that was not kept."""
        return self._functions.get(origin, "")

    def spots_in(self, file: str, line: int) -> Sequence[int]:
        """The spots at a line of a file; empty if nothing was traced there."""
        return self.by_origin.get(Origin(real(file), line), ())


def _name(element: str) -> str:
    """What a spot is called: calls of one kernel share its name, lines and instructions have none."""
    name = element.partition(":")[0]
    return "" if name.isdecimal() or name.startswith("line ") else name


def real(path: str) -> str:
    """A path by which two names of one file are the same."""
    found = _REAL.get(path)
    if found is None:
        found = os.path.normcase(os.path.realpath(path)) if path and "\0" not in path else path
        if len(_REAL) > 4096:
            _REAL.clear()
        _REAL[path] = found
    return found


_REAL: dict[str, str] = {}


def call_names(target: str) -> tuple[str, ...]:
    """What people call an operation or a kernel: its name with and without ``torch.ops.``, overload and namespace."""
    if not target:
        return ()
    names = {target: None}
    short = target.removeprefix("torch.ops.")
    names[short] = None
    parts = short.split(".")
    if target.startswith(("torch.ops.", "aten.", "prims.", "inductor.")) and len(parts) >= 3:
        parts = parts[:-1]  # the overload
        names[".".join(parts)] = None
    names[parts[-1]] = None
    return tuple(names)
