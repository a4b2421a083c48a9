"""The user's lines of collectives that generated code has started: PyTorch records the line of that code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irscope.pipelines.registry import role_of
from irscope.protocol import Origin, Report
from irscope.provenance import Element, Provenance
from irscope.store.store import Store
from irscope.vocabulary.stages import Role

_FILE, _LINE, _COLUMNS = 4, 5, 6
_COLLECTIVE = "c10d"


def at_user_lines(store: Store, report: Report, rows: Sequence[Any]) -> list[Any]:
    """The arrivals of a rank (`irscope.internals.flight_recorder`), each at the user's line.

    A row keeps its place if that is not in generated code of the run, and has none if no line of the user's is known.
    """
    places: dict[tuple[str, int], tuple[str, int]] = {}
    found, lines = [], _Lines(store, report)
    for row in rows:
        if isinstance(row, (list, tuple)) and len(row) >= _COLUMNS and isinstance(row[_FILE], str):
            file, line = place = row[_FILE], row[_LINE]
            if isinstance(line, int) and place not in places:
                places[place] = lines.of(file, line)
            row = [*row[:_FILE], *places.get(place, place), *row[_COLUMNS:]]
        found.append(row)
    return found


class _Lines:
    def __init__(self, store: Store, report: Report) -> None:
        self._store, self._report = store, report
        codes = [
            stage.id for compile in report.compiles for stage in compile.stages if role_of(stage.name) is Role.CODE
        ]
        self._stages = {file: stage for stage in codes if (file := _file_of(store.stage_data(report.run, stage)))}
        self._provenance: Provenance | None = None

    def of(self, file: str, line: int) -> tuple[str, int]:
        if (stage := self._stages.get(file)) is None:
            return file, line
        if self._provenance is None:
            self._provenance = Provenance(self._store, self._report)
        element = self._provenance.at(stage, line)
        origin = None if element is None else self._origin(self._provenance, element)
        return ("", 0) if origin is None else (origin.file, origin.line)

    @staticmethod
    def _origin(provenance: Provenance, element: Element) -> Origin | None:
        """The origin of the nearest collective above; its inputs, which are fused with it by name only, have other
        lines."""
        seen, level = {element}, [element]
        while level:
            for one in level:
                if one.file or _COLLECTIVE not in provenance.item(one).target:
                    continue
                if one is not element and (origins := provenance.origins(one)):
                    return origins[0]
            level = [above for one in level if not one.file for above in provenance.parents(one) if above not in seen]
            seen.update(level)
        return next(iter(provenance.origins(element)), None)


def _file_of(data: Any) -> str:
    """Where Inductor has written output code, from what is kept beside its text; empty if that is not known."""
    file = data.get("file") if isinstance(data, dict) else None
    return file if isinstance(file, str) else ""
