"""The read-only documents of stages and kernels: ``irscope:/RUN/STAGE_ID.EXT``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from urllib.parse import quote, unquote, urlsplit

from irscope.protocol import Report, StageRef

from irscope_server.archive import Archive
from irscope_server.wire import DocumentResult

SCHEME = "irscope"

_EXTENSIONS = {
    "python": ".py",
    "cpp": ".cpp",
    "mlir": ".mlir",
    "llvm": ".ll",
    "ptx": ".ptx",
    "sass": ".sass",
    "asm": ".s",
    "json": ".json",
    "python-bytecode": ".pyc.txt",
    "irscope-guards": ".guards.txt",
}
_OTHER = ".txt"
_GONE = "It may have been removed to make room for newer ones: run the script again."

_PYTHON = frozenset({"python", "triton", "pallas", "cutedsl", "halide", "multi_kernel"})
"""Languages whose texts are Python."""


class NoDocument(LookupError):
    """There is no such document; the message says which part is unknown."""


def uri_of_stage(run: str, stage: str, language: str) -> str:
    return f"{SCHEME}:/{quote(run)}/{quote(stage)}{_EXTENSIONS.get(language_id(language), _OTHER)}"


def language_id(language: str) -> str:
    """What editors call the language of a stage."""
    return "python" if language in _PYTHON else language


def parts_of(uri: str) -> tuple[str, tuple[str, ...]]:
    """The run of a document, and the ids that its stage can have, the likeliest first.

    Clients write a URI in their own way (``irscope:///``, other percent-escapes), so only its meaning counts.
    Raises NoDocument.
    """
    parts = urlsplit(uri)
    run, _, rest = unquote(parts.path).lstrip("/").partition("/")
    endings = sorted({*_EXTENSIONS.values(), _OTHER}, key=len, reverse=True)
    stages = tuple(rest[: -len(ending)] for ending in endings if rest.endswith(ending))
    if parts.scheme != SCHEME or not run or not stages:
        raise NoDocument(f"{uri} names no stage of a run. Choose one with Show Stage….")
    return run, stages


Make = Callable[[Report, str], Awaitable[str]]
"""Makes a stage that a run has not made; returns why it cannot, as a text for the user, or nothing."""


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
    text = await archive.ask(lambda store: store.stage_text(run, stage.id))
    return DocumentResult(text, language_id(stage.language))


async def _report(archive: Archive, run: str) -> Report:
    try:
        return await archive.report(run)
    except LookupError as error:
        raise NoDocument(f"{error.args[0]} {_GONE}") from None


def _first_of(report: Report, candidates: tuple[str, ...]) -> StageRef | None:
    known = {stage.id: stage for compile in report.compiles for stage in compile.stages}
    return next((known[name] for name in candidates if name in known), None)


def _makeable(report: Report, candidates: tuple[str, ...]) -> str | None:
    from irscope.lowering import made_on_demand  # takes time to import, and few need it

    return next((name for name in candidates if made_on_demand(report, name)), None)
