"""Provenance between places: from a spot to what it came from, and to what it became."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from irscope.protocol import Origin
from irscope.provenance import SOURCE, Element

from irscope_server.base.main_first import MOST_OF_WORK, in_order, weight
from irscope_server.dap.base.sections import DAMAGED, Section, real
from irscope_server.dap.engine.recording import PlaceInRun, Recording, Track
from irscope_server.dap.trace.traces import TraceSection

_MOST_NODES = 100
"""Nodes of one line that are looked at."""


class Links:
    """Answers for one run."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def parents(self, place: PlaceInRun) -> tuple[PlaceInRun, ...]:
        """What a spot came from, in the nearest stage above that has any of it.

        For a node of the first graph: the step of the symbolic trace that made it, then its line in the user's code,
        then the instruction of the bytecode.
        """
        track, section = self._at(place)
        if section.is_source:
            return ()
        if isinstance(section, TraceSection):
            return self._above_step(place, section)
        if section.stage.passed:
            return self._named(place, range(place.section - 1, 0, -1))
        found: dict[PlaceInRun, None] = {}
        if section is track.source.graph and (step := self._made_by(place)) is not None:
            found[step] = None
        if section is track.source.graph and (spot := track.source.traced_into(place.spot)) is not None:
            found[PlaceInRun(place.compile, 0, spot)] = None
        element = section.spots[place.spot].element
        if element is not None:
            found.update(
                dict.fromkeys(self._places(place.compile, self._told(self._recording.provenance.parents, element)))
            )
        if not found and (number := track.number_of(section.stage.id.rpartition("/")[0])) is not None:
            return (
                PlaceInRun(place.compile, number, 0),
            )  # a line of machine code that no line of its kernel is known for
        return tuple(found)

    def children(self, place: PlaceInRun) -> tuple[PlaceInRun, ...]:
        """What a spot became, in all stages that name it as what they came from."""
        track, section = self._at(place)
        if section.is_source:
            return self._below_line(place)
        if isinstance(section, TraceSection):
            return self.nodes_of(place, [place.spot])
        if section.stage.passed:
            return self._named(place, range(place.section + 1, len(track.sections)))
        element = section.spots[place.spot].element
        if element is None:
            return ()
        found = self._told(self._recording.provenance.children, element)
        return tuple(dict.fromkeys(self._places(place.compile, self._main_first(place.compile, found))))

    def _main_first(self, compile: int, elements: tuple[Element, ...]) -> Iterator[Element]:
        track = self._recording.tracks[compile]
        weights: list[tuple[str, int]] = []
        for one in elements:
            number = track.number_of(one.stage)
            if len(elements) < 2 or number is None:
                weights.append((one.stage, 0))
                continue
            section = track.sections[number]
            row = section.lines[one.line - 1] if 0 < one.line <= len(section.lines) else ""
            weights.append((one.stage, weight(section.stage.name, self._recording.provenance.item(one), row)))
        return (elements[at] for at in in_order(weights))

    # --- the symbolic trace -------------------------------------------------------------------------------------------

    def nodes_of(self, place: PlaceInRun, steps: Iterable[int]) -> tuple[PlaceInRun, ...]:
        """The nodes of the first graph that steps of a trace made.  What an attempt made that was given up is gone."""
        track, section = self._at(place)
        graph = track.source.graph
        if not isinstance(section, TraceSection) or section.walk is None or not section.is_last or graph is None:
            return ()
        number = track.number_of(graph.stage.id)
        names = [name for step in steps for name in section.walk.step(step).nodes]
        # Placeholders are made by the instruction that first needs them: what it is there for comes first.
        names.sort(key=lambda name: name in graph.nodes and graph.nodes[name].op != "call")
        found = [graph.by_name[name] for name in names if name in graph.by_name]
        return tuple(PlaceInRun(place.compile, number, spot) for spot in found) if number is not None else ()

    def _made_by(self, place: PlaceInRun) -> PlaceInRun | None:
        """The step that made a node of the first graph."""
        track, section = self._at(place)
        name = section.spots[place.spot].name
        for number, trace, walk in reversed(track.traces()):
            if trace.is_last and name and (step := walk.by_node(name)) is not None and step >= 0:
                return PlaceInRun(place.compile, number, step)
        return None

    def _above_step(self, place: PlaceInRun, section: TraceSection) -> tuple[PlaceInRun, ...]:
        """The step that called, else the user's line."""
        if section.walk is not None and (caller := section.walk.caller(place.spot)) is not None:
            return (PlaceInRun(place.compile, place.section, caller),)
        source = self._recording.tracks[place.compile].source
        spots = source.spots_in(section.spots[place.spot].file, section.spots[place.spot].line)
        return (PlaceInRun(place.compile, 0, spots[0] if spots else 0),)

    def _below_line(self, place: PlaceInRun) -> tuple[PlaceInRun, ...]:
        """For a line of the user's: where Dynamo walked over it, and its first node; for the function, each attempt."""
        track = self._recording.tracks[place.compile]
        if place.spot == 0 and (attempts := track.traces()):
            return tuple(PlaceInRun(place.compile, number, 0) for number, _, _ in attempts)
        found: dict[PlaceInRun, None] = {}
        spot = self._main_node(track, place.spot)
        number = track.number_of(track.source.graph.stage.id) if track.source.graph is not None else None
        node = PlaceInRun(place.compile, number, spot) if spot is not None and number is not None else None
        if node is not None and (step := self._made_by(node)) is not None:
            found[step] = None
        elif node is None:
            found.update(dict.fromkeys(self._walked(place)))
        return (*found, node) if node is not None else tuple(found)

    def _main_node(self, track: Track, line: int) -> int | None:
        """The node that a line was first traced into; of operators those that only change a layout come after others."""
        graph, spots = track.source.graph, track.source.all_traced_into(line)
        if graph is None or not spots or not graph.nodes[graph.spots[spots[0]].name].target.startswith("torch.ops."):
            return track.source.leads_to(line)
        elements = ((spot, graph.spots[spot].element) for spot in spots[:_MOST_NODES])
        items = ((spot, self._recording.provenance.item(one)) for spot, one in elements if one is not None)
        computing = (spot for spot, item in items if weight(graph.stage.name, item, "") <= MOST_OF_WORK)
        return next(computing, spots[0])

    def _walked(self, place: PlaceInRun) -> Iterator[PlaceInRun]:
        """The steps in which Dynamo came to a line that gave no node: those that a finding is about, else the first."""
        track = self._recording.tracks[place.compile]
        where = track.source.spots[place.spot]
        for number, trace, _ in track.traces():
            for step, finding in trace.findings_at.items():
                if finding in where.findings:
                    yield PlaceInRun(place.compile, number, step)
        for number, trace, _ in reversed(track.traces()):
            yield from (
                PlaceInRun(place.compile, number, step)
                for step in trace.by_origin.get(Origin(real(where.file), where.line), ())[:1]
            )

    def fate(self, place: PlaceInRun) -> str:
        """Why a spot has no `children`, in words; empty if that is not known."""
        element = self._at(place)[1].spots[place.spot].element
        try:
            return "" if element is None else self._recording.provenance.fate(element)
        except DAMAGED:
            return ""

    def _told(self, ask: Callable[[Element], tuple[Element, ...]], element: Element) -> tuple[Element, ...]:
        try:
            return ask(element)
        except DAMAGED:
            return ()

    def _at(self, place: PlaceInRun) -> tuple[Track, Section]:
        track = self._recording.tracks[place.compile]
        return track, track.section(place.section)

    def _places(self, compile: int, elements: Iterable[Element]) -> Iterator[PlaceInRun]:
        track = self._recording.tracks[compile]
        for element in elements:
            if element.stage == SOURCE:
                yield from (
                    PlaceInRun(compile, 0, spot) for spot in track.source.spots_in(element.file, element.line)[:1]
                )
            elif (number := track.number_of(element.stage)) is not None:
                spot = track.sections[number].by_element.get(element.name)
                if spot is not None:
                    yield PlaceInRun(compile, number, spot)

    def _named(self, place: PlaceInRun, numbers: Iterable[int]) -> tuple[PlaceInRun, ...]:
        """For a version that a pass made: the node of the same name in the nearest graph that is not a version, else
        the
        nodes of the same line."""
        track, section = self._at(place)
        node = section.nodes.get(section.spots[place.spot].name)
        if node is None:
            return ()
        for number in numbers:
            other = track.sections[number]
            if other.stage.passed or not other.nodes:
                continue
            if node.name in other.by_name:
                return (PlaceInRun(place.compile, number, other.by_name[node.name]),)
            if node.origin is not None:
                origin = Origin(real(node.origin.file), node.origin.line)
                if spots := other.by_origin.get(origin):
                    return tuple(PlaceInRun(place.compile, number, spot) for spot in spots)
        return ()
