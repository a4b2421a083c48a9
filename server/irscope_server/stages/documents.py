"""The read-only documents of stages and kernels: ``irscope:/RUN/STAGE_ID.EXT``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from irscope.protocol import Report, StageRef
from irscope.store.store import Store

from irscope_server.base.archive import Archive
from irscope_server.base.results import DocumentResult
from irscope_server.base.stage_uris import NoDocument, language_id, parts_of

_GONE = "It may have been deleted to make room for newer runs. Run the script again."

Make = Callable[[Report, str], Awaitable[str]]
"""Makes a stage that a run has not made; returns why it cannot, as a text for the user, or an empty string."""


async def document(archive: Archive, uri: str, make: Make) -> DocumentResult:
    """Text and language of a document; of one that cannot be made the reason.  Raises NoDocument."""
    run, candidates = parts_of(uri)
    report = await _report(archive, run)
    stage = _first_of(report, candidates)
    if stage is None and (wanted := _makeable(report, candidates)) is not None:
        if problem := await make(report, wanted):
            return DocumentResult(problem, "plaintext")
        stage = _first_of(await _report(archive, run), candidates)
    if stage is None:
        raise NoDocument(f"Run {run} has no stage {candidates[0]}. Choose one with Show Stage….")
    text = await archive.ask(lambda store: _text(store, run, stage))
    return DocumentResult(text, language_id(stage.language))


def _text(store: Store, run: str, stage: StageRef) -> str:
    """The text, of a kernel or of its machine code with comments that leave each line its number."""
    from irscope.lowering.comments import facts_beside, with_comments  # takes time to import

    text = store.stage_text(run, stage.id)
    return with_comments(text, stage.name, facts_beside(store, run, stage, text))


async def _report(archive: Archive, run: str) -> Report:
    try:
        return await archive.report(run)
    except LookupError as error:
        raise NoDocument(f"{error.args[0]} {_GONE}") from None


def _first_of(report: Report, candidates: tuple[str, ...]) -> StageRef | None:
    known = {stage.id: stage for compile in report.with_predictions for stage in compile.stages}
    return next((known[name] for name in candidates if name in known), None)


def _makeable(report: Report, candidates: tuple[str, ...]) -> str | None:
    from irscope.lowering import made_on_demand  # takes time to import, and few need it

    return next((name for name in candidates if made_on_demand(report, name)), None)
