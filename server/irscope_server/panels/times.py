"""``irscope/phases``: where the compile time of a run went, by compile and phase."""

from __future__ import annotations

from dataclasses import dataclass

from irscope.comparing.piece_matrix import piece_matrix
from irscope.ir import phases
from irscope.measures.compile_time import compile_time_tree
from irscope.protocol import Compile, Report
from irscope.provenance.phase_times import phase_trees
from irscope.store.store import Store

from irscope_server.base.context import ReadContext
from irscope_server.base.messages import Encoded
from irscope_server.base.params import PanelRequest
from irscope_server.base.results import Place
from irscope_server.panels.answers import answer, compile_named, place_uri, why_empty
from irscope_server.panels.trees import MeasureTree, tree_answer
from irscope_server.stages.tree import UriOf

_MOST_ROWS = 20_000
"""Phases in an answer about all compiles; those of the shortest compiles are left out first."""

_MOST_PIECES, _MOST_SIZES = 500, 100

PhaseRow = tuple[int, int, float, float, float, int]


@dataclass(frozen=True)
class PhasesParams:
    """A run; with `compile`, the phases of that compile, too."""

    run: str
    compile: str | None = None


@dataclass(frozen=True)
class CompileTimes:
    """The compile time of one compile, by phase."""

    id: str
    function: str
    place: Place
    seconds: float
    phases: tuple[PhaseRow, ...] | None
    """None if they were left out: of more than 20,000 phases those of the shortest compiles are, until they are asked
    for by `compile`.  A phase is ``[name (an index of `names`), parent (-1: none), start, seconds, own seconds, thread (0
    compiles)]``."""


@dataclass(frozen=True)
class PieceRow:
    """A piece of a model that was compiled by itself, or several with the same graph; a cell is empty if nothing
    was compiled for its size."""

    title: str
    cells: tuple[str, ...]


@dataclass(frozen=True)
class PieceTable:
    """Pieces by size; `note` says what the words in the cells mean.  Without rows nothing was compiled in pieces."""

    sizes: tuple[str, ...]
    rows: tuple[PieceRow, ...]
    note: str
    hidden_rows: int
    hidden_sizes: int


@dataclass(frozen=True)
class PhasesResult:
    """The compile time of a run; `reason` says in words why it is not known."""

    run: str
    pipeline: str
    """The name of the pipeline that the run's programs went through."""
    seconds: float
    names: tuple[str, ...]
    labels: tuple[str, ...]
    """What the names mean, in the same order; empty for those that say so themselves."""
    compiles: tuple[CompileTimes, ...]
    phases: MeasureTree
    """The same by what was compiled and by phase, added up."""
    pieces: PieceTable
    """The pieces that a backend such as vLLM's compiled by themselves."""
    reason: str


async def phases_of(context: ReadContext, params: PhasesParams) -> Encoded:
    """Raises LookupError for an unknown run or compile."""

    def read(store: Store, report: Report) -> PhasesResult:
        compiles = report.compiles
        if params.compile is not None:
            one = compile_named(report, params.compile)
            compiles = (one,) if one is not None else ()
        return _result(store, report, compiles, context.uri_of)

    return await answer(context, ("phases", params.run, params.compile), params.run, read)


def _result(store: Store, report: Report, compiles: tuple[Compile, ...], uri_of: UriOf) -> PhasesResult:
    trees = phase_trees(store, report, compiles)
    names: dict[str, int] = {}
    labels: list[str] = []
    left = _MOST_ROWS
    rows: dict[str, tuple[PhaseRow, ...]] = {}
    for id in sorted(trees, key=lambda id: -phases.whole(trees[id])):
        left -= len(trees[id])
        if left < 0 and rows:
            continue
        for phase in trees[id]:
            if phase.name not in names:
                names[phase.name] = len(names)
                labels.append(phase.label)
        rows[id] = tuple((names[p.name], p.parent, p.start, p.seconds, p.own, p.track) for p in trees[id])
    found = tuple(
        CompileTimes(
            compile.id,
            compile.title,
            Place(place_uri(uri_of, compile.file), max(0, compile.line - 1)),
            phases.whole(trees[compile.id]),
            rows.get(compile.id),
        )
        for compile in compiles
        if compile.id in trees
    )
    return PhasesResult(
        report.run,
        report.pipeline,
        round(
            sum(compile.seconds or phases.whole(trees[compile.id]) for compile in compiles if compile.id in trees), 6
        ),
        tuple(names),
        tuple(labels),
        found,
        tree_answer(compile_time_tree(compiles, trees), uri_of),
        _pieces(report),
        "" if found else why_empty(report, "compile times by phase"),
    )


def _pieces(report: Report) -> PieceTable:
    found = piece_matrix(report.pieces, _MOST_PIECES, _MOST_SIZES)
    rows = tuple(PieceRow(row.title, row.cells) for row in found.rows)
    return PieceTable(found.sizes, rows, found.note, found.hidden_rows, found.hidden_sizes)


REQUEST = PanelRequest("irscope/phases", PhasesParams, PhasesResult, phases_of)
