"""Findings as diagnostics, for clients that are told (push) and for clients that ask (pull)."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Sequence

from irscope.findings.control import UNUSED
from irscope.protocol import Range, Severity
from irscope.vocabulary.visible import visible
from lsprotocol import types

from irscope_server.base import words
from irscope_server.base.context import EditorContext
from irscope_server.base.texts import FileKey, to_units
from irscope_server.language.finding_text import told_apart
from irscope_server.language.views import PlacedFinding, Views
from irscope_server.running.results import Results

log = logging.getLogger(__name__)

_SEVERITY = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.INFORMATION: types.DiagnosticSeverity.Information,
    Severity.HINT: types.DiagnosticSeverity.Hint,
}

_TAGS = {UNUSED: [types.DiagnosticTag.Unnecessary]}
"""By kind; tagged so, an ignore comment that hides nothing is shown faded."""

_PAUSE = 0.05
"""Seconds between two publications: a frame that recompiles a thousand times sends a thousand findings."""


def lsp_range(
    lines: Sequence[str], line: int, column: int, end_line: int, end_column: int, encoding: str
) -> types.Range:
    """A place (0-based lines, string columns, end exclusive) in the client's units; an empty one becomes its line."""
    start_text = lines[line] if line < len(lines) else ""
    end_text = lines[end_line] if end_line < len(lines) else ""
    if (end_line, end_column) <= (line, column):
        end_line, end_text = line, start_text
        end_column = len(start_text.rstrip())
        column = min(column, len(start_text) - len(start_text.lstrip()))
    return types.Range(
        types.Position(line, to_units(start_text, column, encoding) if start_text else column),
        types.Position(end_line, to_units(end_text, end_column, encoding) if end_text else end_column),
    )


def range_in(lines: Sequence[str], place: Range, encoding: str) -> types.Range:
    """A range of the protocol (1-based lines) in the client's units."""
    return lsp_range(lines, place.start.line - 1, place.start.column, place.end.line - 1, place.end.column, encoding)


def diagnostic_of(context: EditorContext, placed: PlacedFinding, lines: Sequence[str]) -> types.Diagnostic:
    """A finding as an LSP diagnostic at its place in the current text; ``data`` is what code actions need."""
    finding = placed.finding
    return types.Diagnostic(
        range=lsp_range(lines, placed.line, placed.column, placed.end_line, placed.end_column, context.encoding),
        message=visible("\n".join([finding.message, *(symbol.line() for symbol in finding.symbols)])),
        severity=_SEVERITY[finding.severity],
        code=visible(finding.code),
        code_description=types.CodeDescription(finding.link) if words.is_web_link(finding.link) else None,
        source="irscope",
        related_information=[
            types.DiagnosticRelatedInformation(
                types.Location(
                    context.uri_of(related.file),
                    range_in(context.texts.lines(related.file), related.range, context.encoding),
                ),
                visible(related.message),
            )
            for related in told_apart(placed.related, context.rich_hovers)[0]
        ]
        or None,
        tags=_TAGS.get(finding.kind),
        data={
            "run": placed.run,
            "kind": finding.kind,
            "code": finding.code,
            **({"stale": True} if placed.stale else {}),
        },
    )


def diagnostics_of(context: EditorContext, views: Views, key: FileKey) -> list[types.Diagnostic]:
    """The diagnostics of a file as its text is now, one per cause."""
    lines = context.texts.lines(key)
    return [diagnostic_of(context, placed, lines) for placed in views.causes(key)]


class Publisher:
    """Tells the client about changed diagnostics: by publishing, or by asking it to ask again."""

    def __init__(self, context: EditorContext, results: Results, views: Views) -> None:
        self._context, self._results, self._views = context, results, views
        self._published: dict[FileKey, list[types.Diagnostic]] = {}
        self._uris: dict[FileKey, str] = {}
        """The URI of each document: that of a notebook's cell is not known any more once the notebook is closed."""
        self._timer: asyncio.TimerHandle | None = None
        self._last = 0.0
        self._changed = asyncio.Event()
        self._asked = False

    def changed(self) -> None:
        """Something was found, or a text changed.  The first news goes out at once, what follows soon after."""
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(0.0, self._last + _PAUSE - loop.time()), self._flush)

    def _flush(self) -> None:
        self._timer = None
        self._last = asyncio.get_running_loop().time()
        if self._context.pulls:
            self._changed.set()
            self._changed = asyncio.Event()
            self._context.refresh("workspace/diagnostic/refresh")
        else:
            self._publish()

    def _publish(self) -> None:
        context = self._context
        for key in sorted({*self._results.files(), *self._published}):
            diagnostics = diagnostics_of(context, self._views, key)
            if self._uris.get(key, uri := context.uri_of(key)) != uri and context.is_open(key):
                self._put(key, [])  # it was opened by another name: a link leads to it
            if diagnostics != self._published.get(key, []):
                self._put(key, diagnostics)

    def _put(self, key: FileKey, diagnostics: list[types.Diagnostic]) -> None:
        if diagnostics:
            self._published[key], self._uris[key] = diagnostics, self._context.uri_of(key)
            uri = self._uris[key]
        else:
            del self._published[key]
            uri = self._uris.pop(key)
        self._context.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(uri, diagnostics, self._context.version_of(key))
        )

    async def document_report(self, params: types.DocumentDiagnosticParams) -> types.DocumentDiagnosticReport:
        """The answer to ``textDocument/diagnostic``."""
        context = self._context
        document = context.document(params.text_document.uri)
        if document is None:
            return types.RelatedFullDocumentDiagnosticReport([])
        diagnostics = diagnostics_of(context, self._views, document.key)
        result_id = _result_id(diagnostics)
        if params.previous_result_id == result_id:
            return types.RelatedUnchangedDocumentDiagnosticReport(result_id)
        return types.RelatedFullDocumentDiagnosticReport(diagnostics, result_id=result_id)

    async def workspace_report(self, params: types.WorkspaceDiagnosticParams) -> types.WorkspaceDiagnosticReport:
        """The answer to ``workspace/diagnostic``: files that are not open and have findings.

        Clients ask again as soon as they are answered, so an answer that would say nothing new waits for news.
        """
        before = {entry.uri: entry.value for entry in params.previous_result_ids}
        while True:
            changed = self._changed
            reports = self._closed_files(before)
            if reports or not self._asked:  # the first answer says that there is nothing yet
                self._asked = True
                return types.WorkspaceDiagnosticReport(reports)
            await changed.wait()

    def _closed_files(self, before: dict[str, str]) -> list[types.WorkspaceDocumentDiagnosticReport]:
        context = self._context
        reports: list[types.WorkspaceDocumentDiagnosticReport] = []
        told = {document.key: uri for uri in before if (document := context.document(uri)) is not None}
        for key in sorted({*self._results.files(), *told}):
            diagnostics = [] if context.is_open(key) else diagnostics_of(context, self._views, key)
            uri, result_id = told.get(key) or context.uri_of(key), _result_id(diagnostics)
            if before.get(uri, _result_id([])) != result_id:
                reports.append(types.WorkspaceFullDocumentDiagnosticReport(uri, diagnostics, result_id=result_id))
        return reports


def _result_id(diagnostics: Sequence[types.Diagnostic]) -> str:
    return hashlib.sha1(repr(diagnostics).encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()[:16]
