"""The read-only documents of stages and kernels: ``irscope:/RUN/STAGE_ID.EXT``."""

from __future__ import annotations

from urllib.parse import quote, unquote, urlsplit

from irscope.protocol import StageRef

from irscope_server.archive import Archive
from irscope_server.wire import DocumentResult

SCHEME = "irscope"

_EXTENSIONS = {
    "python": ".py",
    "cpp": ".cpp",
    "python-bytecode": ".pyc.txt",
    "irscope-guards": ".guards.txt",
}
_OTHER = ".txt"
_GONE = "It may have been removed to make room for newer ones: run the script again."


class NoDocument(LookupError):
    """There is no such document; the message says which part is unknown."""


def uri_of_stage(run: str, stage: str, language: str) -> str:
    return f"{SCHEME}:/{quote(run)}/{quote(stage)}{_EXTENSIONS.get(language, _OTHER)}"


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


async def document(archive: Archive, uri: str) -> DocumentResult:
    """Text and language of a document.  Raises NoDocument."""
    run, candidates = parts_of(uri)
    try:
        report = await archive.report(run)
    except LookupError as error:
        raise NoDocument(f"{error.args[0]} {_GONE}") from None
    known: dict[str, StageRef] = {stage.id: stage for compile in report.compiles for stage in compile.stages}
    stage = next((known[name] for name in candidates if name in known), None)
    if stage is None:
        raise NoDocument(f"Run {run} has no stage {candidates[0]}. Choose one with Show Stage….")
    text = await archive.ask(lambda store: store.stage_text(run, stage.id))
    return DocumentResult(text, stage.language)
