"""``irscope/phases``: where the compile time of a run went, by compile and phase."""

from __future__ import annotations

from dataclasses import dataclass

from irscope.comparing.piece_matrix import PieceMatrix, piece_matrix
from irscope.measures.compile_time import compile_time_tree
from irscope.protocol import Report
from irscope.provenance.phase_times import phase_trees
from irscope.store.store import Store

from irscope_server.base.context import ReadContext
from irscope_server.base.messages import Encoded
from irscope_server.base.params import PanelRequest
from irscope_server.panels.answers import answer, why_empty
from irscope_server.panels.trees import MeasureTree, tree_answer

_MOST_PIECES, _MOST_SIZES = 500, 100


@dataclass(frozen=True)
class PhasesParams:
    """A run."""

    run: str


@dataclass(frozen=True)
class PhasesResult:
    """The compile time of a run; `reason` says in words why it is not known."""

    run: str
    pipeline: str
    """The name of the pipeline that the run's programs went through."""
    compiles: int
    """How many compiles have a known time."""
    phases: MeasureTree
    """The compile time by what was compiled and by phase; its whole is that of the run."""
    pieces: PieceMatrix
    """The pieces that a backend such as vLLM's compiled by themselves."""
    reason: str


async def phases_of(context: ReadContext, params: PhasesParams) -> Encoded:
    """Raises LookupError for an unknown run."""

    def read(store: Store, report: Report) -> PhasesResult:
        trees = phase_trees(store, report, report.compiles)
        return PhasesResult(
            report.run,
            report.pipeline,
            len(trees),
            tree_answer(compile_time_tree(report.compiles, trees), context.uri_of),
            piece_matrix(report.pieces, _MOST_PIECES, _MOST_SIZES),
            "" if trees else why_empty(report, "compile times by phase"),
        )

    return await answer(context, ("phases", params.run), params.run, read)


REQUEST = PanelRequest("irscope/phases", PhasesParams, PhasesResult, phases_of)
