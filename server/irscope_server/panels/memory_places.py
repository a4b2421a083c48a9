"""``irscope/memoryPlaces``: the user's lines that made the buffers of a memory plan.

On its own: of a graph of thousands of nodes it takes seconds to follow the buffers up to their lines, and the chart
does not need them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from irscope.measures.memory import writers_of
from irscope.pipelines.registry import role_of
from irscope.protocol import Compile, Report, StageRef
from irscope.provenance import Provenance
from irscope.store.store import Store
from irscope.vocabulary.stages import Role

from irscope_server.base.context import ReadContext
from irscope_server.base.messages import Encoded
from irscope_server.base.params import PanelRequest
from irscope_server.base.results import Place
from irscope_server.panels.answers import answer, compile_named
from irscope_server.panels.memory import MemoryParams
from irscope_server.stages.tree import UriOf

_MOST_PLACES = 4


@dataclass(frozen=True)
class BufferPlaces:
    """Where a buffer came from; a buffer of unknown origin is left out."""

    name: str
    places: tuple[Place, ...]


@dataclass(frozen=True)
class PlanPlaces:
    """The places of the buffers of one plan, by the plan's stage."""

    stage: str
    buffers: tuple[BufferPlaces, ...]


@dataclass(frozen=True)
class MemoryPlacesResult:
    """The places of all plans of a compile."""

    run: str
    plans: tuple[PlanPlaces, ...]


async def memory_places(context: ReadContext, params: MemoryParams) -> Encoded:
    """Raises LookupError for an unknown run or compile."""

    def read(store: Store, report: Report) -> MemoryPlacesResult:
        compile = compile_named(report, params.compile)
        plans = () if compile is None else tuple(_plans(store, report, compile, context.uri_of))
        return MemoryPlacesResult(report.run, plans)

    return await answer(context, ("memoryPlaces", params.run, params.compile), params.run, read)


def _plans(store: Store, report: Report, compile: Compile, uri_of: UriOf) -> list[PlanPlaces]:
    provenance = Provenance(store, report)
    found = []
    for stage in compile.stages:
        if role_of(stage.name) is Role.MEMORY:
            try:
                data = store.stage_data(report.run, stage.id)
                found.append(_plan(store, report, compile, stage, data, provenance, uri_of))
            except (LookupError, TypeError, ValueError, AttributeError):
                continue  # data of another version, or from elsewhere
    return found


def _plan(
    store: Store, report: Report, compile: Compile, stage: StageRef, data: Any, provenance: Provenance, uri_of: UriOf
) -> PlanPlaces:
    writers = writers_of(store, report.run, compile, stage)
    elements = {
        (schedule, one.name): one
        for schedule in {writer.schedule for writer in writers.values()}
        for one in provenance.elements(schedule)
    }
    buffers = []
    for name in (str(buffer["name"]) for buffer in data["buffers"]):
        writer = writers.get(name)
        element = None if writer is None else elements.get((writer.schedule, writer.node))
        if element is not None and (origins := provenance.origins(element)[:_MOST_PLACES]):
            places = tuple(Place(uri_of(one.file), max(0, one.line - 1)) for one in origins)
            buffers.append(BufferPlaces(name, places))
    return PlanPlaces(stage.id, tuple(buffers))


REQUEST = PanelRequest("irscope/memoryPlaces", MemoryParams, MemoryPlacesResult, memory_places)
