"""The numbers of a value run at the places of a session: what a node computed, and where compiled code differs.

They are read from the store and the file beside it, without torch.  Expressions over them are evaluated in a process of the
user's interpreter (`irscope.values.run.client`), which lives as long as the session.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from irscope.findings.kinds.divergence import KIND, finding_of
from irscope.protocol import Finding
from irscope.store.value_file import folder_of
from irscope.values.facts import Facts, Lazy
from irscope.values.run.client import ValueProcess, ValueProcessError
from irscope.values.run.expressions import names_in
from irscope.values.run.reading import StoredValues, divergences, stored_values
from irscope.values.run.text import number, picture_lines, summary

from irscope_server.dap.base.sections import DAMAGED
from irscope_server.dap.engine.links import Links
from irscope_server.dap.engine.recording import PlaceInRun, Recording

_PAGE = 256
"""Elements that are read at once."""
_DEEPEST = 4
"""Stages that are looked through for what a place became."""


@dataclass(frozen=True)
class NodeValue:
    """What a node computed.  ``node`` is another than the place's own where that became it in a later stage."""

    values: StoredValues
    node: str
    value: dict[str, Any]
    is_own: bool


@dataclass(frozen=True)
class Divergent:
    """Where a compile differs: the place, the finding, and what the comparison found."""

    place: PlaceInRun
    finding: Finding
    found: dict[str, Any]


class RunValues:
    """The numbers of one run.  They are read on request."""

    def __init__(self, recording: Recording, links: Links) -> None:
        self._recording, self._links = recording, links
        self._process: ValueProcess | None = None
        self.python = sys.executable
        """The interpreter that evaluates expressions; it needs torch."""

    def close(self) -> None:
        """End the value process, if one was started."""
        if self._process is not None:
            self._process.close()

    # --- what there is ------------------------------------------------------------------------------------------------

    @cached_property
    def _stages(self) -> dict[str, StoredValues]:
        """By the graph stage whose values they are."""
        try:
            return {each.stage: each for each in stored_values(self._recording.store, self._recording.report)}
        except DAMAGED:
            return {}

    @cached_property
    def _compared(self) -> dict[str, dict[str, Any]]:
        """By the graph stage that was compared."""
        try:
            found = divergences(self._recording.store, self._recording.report)
            return {str(data["stage"]): data for _, data in found}
        except DAMAGED:
            return {}

    def at(self, place: PlaceInRun) -> NodeValue | None:
        """The value at a place: of its node, else of the last node that it became and that has the same shape."""
        if not self._stages:
            return None
        section, name = self._recording.section(place), self._recording.spot(place).name
        if (own := self._of(place)) is not None:
            return NodeValue(own, name, own.value(name) or {}, True)
        facts = section.facts.get(name)
        wanted = list(facts.value.sizes) if facts is not None and facts.value.kind == "tensor" else None
        places: Sequence[PlaceInRun] = (place,)
        for _ in range(_DEEPEST):
            places = [below for each in places for below in self._links.children(each)]
            for below in sorted(places, reverse=True):
                if (values := self._of(below)) is not None:
                    node = self._recording.spot(below).name
                    value = values.value(node) or {}
                    if wanted is None or value.get("shape") == wanted:
                        return NodeValue(values, node, value, False)
        return None

    def _of(self, place: PlaceInRun) -> StoredValues | None:
        values = self._stages.get(self._recording.section(place).stage.id)
        name = self._recording.spot(place).name
        return values if values is not None and name and values.value(name) is not None else None

    # --- as facts -----------------------------------------------------------------------------------------------------

    def facts(self, place: PlaceInRun) -> Facts | None:
        """The value at a place, for people; None if none was kept."""
        found = self.at(place)
        if found is None:
            return None
        try:
            return value_facts(found)
        except DAMAGED:
            return None

    def comparison(self, place: PlaceInRun) -> Facts | None:
        """How compiled code compares with its graph at a node; None if that was not looked at."""
        data = self._compared.get(self._recording.section(place).stage.id)
        name = self._recording.spot(place).name
        if data is None or not name:
            return None
        try:
            found, node = data["found"], next((node for node in data["nodes"] if node["name"] == name), None)
            is_first = bool(found) and found["node"] == name
            local = found["local"] if is_first else node["local"] if node else None
            if local is None and not is_first:
                return None
            facts: dict[str, Any] = {}
            if local is not None:
                compiled, eager, wide = local["numbers"]
                facts |= {
                    "differs": local["ratio"] == "inf" or local["ratio"] > 1, "of_allowed": local["ratio"],
                    "error": local["compiled"], "eager_error": local["eager"], "allowed": local["allowed"],
                    "index": local["index"], "compiled": compiled, "eager": eager, "float64": wide,
                }  # fmt: skip
            if is_first:
                facts |= {
                    "introduced_by": found["pass"] or found["how"],
                    "kernel": found["kernel"],
                    "tried": found["tried"],
                }
            return Facts("comparison", str(found["message"]) if is_first else "no divergence", facts)
        except DAMAGED:
            return None

    # --- divergences --------------------------------------------------------------------------------------------------

    @cached_property
    def divergent(self) -> dict[tuple[int, int], Divergent]:
        """The first divergence of each graph, by the numbers of its compile and its stage."""
        found = {}
        for data in self._compared.values():
            try:
                each = self._divergent(data)
            except DAMAGED:
                each = None
            if each is not None:
                found[each.place.compile, each.place.section] = each
        return found

    def _divergent(self, data: dict[str, Any]) -> Divergent | None:
        found = data["found"]
        if found is None:
            return None
        for compile, track in enumerate(self._recording.tracks):
            ids = [data["stage"], found["stage"]]
            numbers = [number for id in reversed(ids) if (number := track.number_of(str(id))) is not None]
            for section in numbers:
                spot = track.sections[section].by_name.get(str(found["node"]))
                finding = next((each for each in track.source.findings if each.message == found["message"]), None)
                if spot is not None and (finding := finding or finding_of(track.compile.id, found)) is not None:
                    return Divergent(PlaceInRun(compile, section, spot), finding, found)
        return None

    def divergence_at(self, place: PlaceInRun) -> Divergent | None:
        """What differs at exactly this spot; None if nothing differs or nothing was compared."""
        each = self.divergent.get((place.compile, place.section)) if self._compared else None
        return each if each is not None and each.place.spot == place.spot else None

    def stops_elsewhere(self, place: PlaceInRun, finding: Finding) -> bool:
        """Whether a finding on a user's line is that of a node at which the session stops anyway."""
        return (
            finding.kind == KIND.id
            and place.section == 0
            and any(compile == place.compile for compile, _ in self.divergent)
        )

    # --- expressions --------------------------------------------------------------------------------------------------

    def can_evaluate(self, text: str, place: PlaceInRun) -> bool:
        """Whether an expression speaks of tensors alone that are known at a place."""
        found, names = self.at(place), names_in(text)
        values = self._known_at(place)
        known = set(values.names()) if values is not None else set()
        known |= set(self.compared_tensors(place))
        return bool(names) and names <= known | ({"value"} if found is not None else set())

    def evaluate(self, text: str, place: PlaceInRun) -> Facts:
        """Raises ValueProcessError with a sentence if there is no value."""
        found, values = self.at(place), self._known_at(place)
        if values is None:
            raise ValueProcessError("No values were kept here.")
        if self._process is None:
            self._process = ValueProcess(self.python)
        here, more = found.node if found is not None else "", self.compared_tensors(place)
        value, printed = self._process.evaluate(text, values, here, more)
        facts = _facts_of(value, lambda start, count: value.get("elements", [])[start : start + count])
        return Facts("value", printed, facts) if facts else Facts("value", printed, {"value": printed})

    def picture(self, text: str, place: PlaceInRun, view: Mapping[str, Any]) -> dict[str, Any]:
        """The value of an expression as a picture.  Raises ValueProcessError with a sentence if there is none."""
        found, values = self.at(place), self._known_at(place)
        if values is None:
            raise ValueProcessError("No values were kept here.")
        if self._process is None:
            self._process = ValueProcess(self.python)
        here, compared = found.node if found is not None else "", self.compared_tensors(place)
        return self._process.picture(text, values, here, compared, view)

    def compared_tensors(self, place: PlaceInRun) -> dict[str, Any]:
        """``compiled``, ``eager`` and ``float64`` at the node that differs, each with the path of its file; else none."""
        each = self.divergence_at(place)
        try:
            kept = each.found["tensors"] if each is not None else None
            if not isinstance(kept, dict):
                return {}
            folder = folder_of(self._recording.store.path, self._recording.report.run)
            values = StoredValues("", "", "", {"file": kept["file"]}, folder)
            return {name: {**kept[name], "path": values.path()} for name in ("compiled", "eager", "float64")}
        except (*DAMAGED, ValueError):
            return {}

    def _known_at(self, place: PlaceInRun) -> StoredValues | None:
        own = self._stages.get(self._recording.section(place).stage.id)
        found = self.at(place)
        return own or (found.values if found is not None else None)

    # --- reproducers --------------------------------------------------------------------------------------------------

    def reproducer(self, place: PlaceInRun) -> dict[str, Any] | None:
        """The data of the comparison at a place, else of its compile, else of the run, that has a reproducer."""
        compile = f"{self._recording.tracks[place.compile].compile.id}/"
        stage = self._recording.section(place).stage.id
        ready = {id: data for id, data in self._compared.items() if data.get("reproducer")}
        mine = [data for id, data in ready.items() if id.startswith(compile)]
        return ready.get(stage) or next(iter([*mine, *ready.values()]), None)


def value_facts(found: NodeValue) -> Facts:
    """A value with its statistics, its picture and its elements, which are read when the user opens them."""
    value = found.value

    def read(start: int, count: int) -> list[Any]:
        try:
            return found.values.elements(value, start, count)
        except (OSError, ValueError) as error:
            raise LookupError(str(error)) from None

    facts = _facts_of(value, read)
    if not found.is_own:
        facts["of"] = f"{found.node} in {found.values.stage}"
    if not facts:
        facts = {"value": summary(value)}
    facts["call"] = found.values.data.get("call")
    told = summary(value)
    if value["kind"] == "tensor" and value["min"] is not None:
        told += f" from {number(value['min'])} to {number(value['max'])}, mean {number(value['mean'])}"
        told += "".join(f", {value[key]} {word}" for key, word in (("nan", "NaN"), ("posinf", "+inf"), ("neginf", "-inf")) if value[key])  # fmt: skip
    return Facts("value", told, facts)


def _facts_of(value: dict[str, Any], read: Callable[[int, int], list[Any]]) -> dict[str, Any]:
    if value["kind"] == "list":
        return {str(index): summary(item) for index, item in enumerate(value["items"])}
    if value["kind"] != "tensor":
        return {}
    facts: dict[str, Any] = {"dtype": value["dtype"], "shape": list(value["shape"])}
    facts |= {key: value[key] for key in ("min", "max", "mean", "std") if value[key] is not None}
    facts |= {"nan": value["nan"], "inf": value["posinf"] + value["neginf"], "zeros": value["zeros"]}
    if picture := picture_lines(value.get("picture")):
        facts["picture"] = picture
    shape = [int(size) for size in value["shape"]]
    facts["elements"] = _Rows(str(value["dtype"]), read).rows(shape, 0) if shape else (lambda: _first(read))
    return facts


def _first(read: Callable[[int, int], list[Any]]) -> Any:
    found = read(0, 1)
    return _shown(found[0]) if found else None


class _Rows:
    """The elements of a tensor as lists in lists, read page by page."""

    def __init__(self, dtype: str, read: Callable[[int, int], list[Any]]) -> None:
        self._dtype, self._read = dtype, read
        self._start, self._page = 0, list[Any]()

    def rows(self, shape: list[int], start: int) -> Lazy:
        inner = 1
        for size in shape[1:]:
            inner *= size
        if len(shape) == 1:
            return Lazy(shape[0], lambda index: self._element(start + index))
        text = f"{self._dtype}[{', '.join(map(str, shape))}]"
        return Lazy(shape[0], lambda index: self.rows(shape[1:], start + index * inner), text=text)

    def _element(self, index: int) -> Any:
        if not self._start <= index < self._start + len(self._page):
            self._start = index - index % _PAGE
            self._page = self._read(self._start, _PAGE)
        at = index - self._start
        return _shown(self._page[at]) if at < len(self._page) else None


def _shown(element: Any) -> Any:
    """An element in as many digits as tell it from its neighbours in float32."""
    if isinstance(element, complex):
        return str(element)
    return float(f"{element:.8g}") if isinstance(element, float) else element
