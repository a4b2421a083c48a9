"""What editors ask about the read-only documents of stages: definition, references, highlights, hover, symbols, folds."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

from irscope.ir.graph_statements import ORIGIN_HEAD
from irscope.ir.line_tables import source_lines
from irscope.pipelines.registry import role_of
from irscope.provenance import chain
from irscope.vocabulary.stages import Role
from lsprotocol import types

from irscope_server.base.messages import Encoded
from irscope_server.base.stage_uris import SCHEME, parts_of
from irscope_server.base.texts import from_units, to_units
from irscope_server.stages.hovers import hover_text
from irscope_server.stages.linked import LinkContext, RunReader, document_uri
from irscope_server.stages.names import Occurrence
from irscope_server.stages.outline import folds_json, outline_json
from irscope_server.stages.texts import StageText, StageTexts

T = TypeVar("T")


class StageContext(LinkContext, Protocol):
    """The reader of stages, with the texts that were asked for last and the client's unit of columns."""

    @property
    def stage_texts(self) -> StageTexts:
        """The texts of stages that were asked for last."""

    @property
    def encoding(self) -> str:
        """The client's unit of columns: ``utf-8``, ``utf-16`` or ``utf-32``."""


# --- requests ---------------------------------------------------------------------------------------------------------


async def definition(context: StageContext, params: types.DefinitionParams) -> list[types.Location] | None:
    """Where a name is made; of a call of a kernel its text, of ``# File: …`` the source, of ``loc`` the kernel's line."""
    uri, position = params.text_document.uri, params.position

    def find(run: RunReader, text: StageText) -> list[types.Location]:
        row, column = _place(text, position, context.encoding)
        if (match := _FILE.match(row)) is not None:
            line = max(0, int(match["line"]) - 1)
            return [types.Location(context.uri_of(match["file"]), _line_range(line))]
        if (kernel_line := _location_word(run, text, position.line, row, column)) is not None:
            stage, line = kernel_line
            return [types.Location(document_uri(run, stage), _line_range(line))]
        one = text.names.at(position.line, column)
        if one is None:
            return []
        if (kernel := _kernel_of(run, text, one)) is not None:
            return [types.Location(document_uri(run, kernel), _line_range(0))]
        made = text.names.definition(one)
        return [] if made is None else [types.Location(uri, _range(text, made, context.encoding))]

    return await _ask(context, uri, find)


async def references(context: StageContext, params: types.ReferenceParams) -> list[types.Location] | None:
    """All places of the name at a position, in its stage; None if the document is not available."""
    uri, position = params.text_document.uri, params.position
    with_definition = params.context.include_declaration

    def find(run: RunReader, text: StageText) -> list[types.Location]:
        _, column = _place(text, position, context.encoding)
        one = text.names.at(position.line, column)
        found = [] if one is None else text.names.references(one)
        return [
            types.Location(uri, _range(text, other, context.encoding))
            for other in found
            if with_definition or not other.defines
        ]

    return await _ask(context, uri, find)


async def highlights(
    context: StageContext, params: types.DocumentHighlightParams
) -> list[types.DocumentHighlight] | None:
    """All places of the name at a position, each as written or read; None if the document is not available."""
    position = params.position

    def find(run: RunReader, text: StageText) -> list[types.DocumentHighlight]:
        _, column = _place(text, position, context.encoding)
        one = text.names.at(position.line, column)
        kinds = {True: types.DocumentHighlightKind.Write, False: types.DocumentHighlightKind.Read}
        return [
            types.DocumentHighlight(_range(text, other, context.encoding), kinds[other.defines])
            for other in ([] if one is None else text.names.references(one))
        ]

    return await _ask(context, params.text_document.uri, find)


async def hover(context: StageContext, params: types.HoverParams) -> types.Hover | None:
    """What is known about the name and the line at a position; None if nothing is."""
    position = params.position

    def find(run: RunReader, text: StageText) -> types.Hover | None:
        _, column = _place(text, position, context.encoding)
        one = text.names.at(position.line, column)
        found = hover_text(run, text.stage, position.line + 1, one.name if one else "", context.uri_of)
        if not found:
            return None
        place = _range(text, one, context.encoding) if one is not None else None
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, found), place)

    return await _ask(context, params.text_document.uri, find)


async def symbols(context: StageContext, params: types.DocumentSymbolParams) -> Encoded | None:
    """The outline of a stage, encoded; None if the document is not available."""
    return await _encoded(context, params.text_document.uri, "outline", outline_json)


async def folds(context: StageContext, params: types.FoldingRangeParams) -> Encoded | None:
    """The ranges of a stage that can be folded, encoded; None if the document is not available."""
    return await _encoded(context, params.text_document.uri, "folds", lambda run, text, encoding: folds_json(text))


async def _encoded(
    context: StageContext, uri: str, name: str, make: Callable[[RunReader, StageText, str], str]
) -> Encoded | None:
    """An answer as JSON, which is made once for each text."""

    def find(run: RunReader, text: StageText) -> Encoded:
        if name not in text.answers:
            text.answers[name] = make(run, text, context.encoding)
        return Encoded(text.answers[name])

    return await _ask(context, uri, find)


async def _ask(context: StageContext, uri: str, question: Callable[[RunReader, StageText], T]) -> T | None:
    """Asks about the text of a stage; None for a document of another kind, or one that is gone."""
    if not uri.startswith(f"{SCHEME}:"):
        return None
    try:
        run, candidates = parts_of(uri)
        return await context.stages.ask(
            run, lambda reader: question(reader, context.stage_texts.of(reader, reader.stage_of(candidates)))
        )
    except LookupError:
        return None


def registrations() -> list[types.Registration]:
    """The features above, hovers and lenses for the documents of our scheme alone, for clients that can be told so."""
    options = types.TextDocumentRegistrationOptions(document_selector=[types.TextDocumentFilterScheme(scheme=SCHEME)])
    methods = [*METHODS, types.TEXT_DOCUMENT_HOVER, types.TEXT_DOCUMENT_CODE_LENS]
    return [types.Registration(f"irscope-{method}", method, options) for method in methods]


METHODS: dict[str, Callable[[Any, Any], Awaitable[Any]]] = {
    types.TEXT_DOCUMENT_DEFINITION: definition,
    types.TEXT_DOCUMENT_REFERENCES: references,
    types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT: highlights,
    types.TEXT_DOCUMENT_DOCUMENT_SYMBOL: symbols,
    types.TEXT_DOCUMENT_FOLDING_RANGE: folds,
}
"""Hovers and lenses are not among them: those of Python files have their own handlers, which ask ours, too."""


# --- places -----------------------------------------------------------------------------------------------------------

_FILE = re.compile(ORIGIN_HEAD)
_LOCATION = re.compile(r"\bloc\b(?=\()|\.loc\b|!dbg\b|\bloc\(")


def _place(text: StageText, position: types.Position, encoding: str) -> tuple[str, int]:
    row = text.rows[position.line] if position.line < len(text.rows) else ""
    return row, from_units(row, position.character, encoding)


def _range(text: StageText, one: Occurrence, encoding: str) -> types.Range:
    row = text.rows[one.line]
    start, end = to_units(row, one.start, encoding), to_units(row, one.end, encoding)
    return types.Range(types.Position(one.line, start), types.Position(one.line, end))


def _line_range(line: int) -> types.Range:
    return types.Range(types.Position(line, 0), types.Position(line, 0))


def _kernel_of(run: RunReader, text: StageText, one: Occurrence) -> str | None:
    """The stage of the kernel that a name in output code calls or defines."""
    if role_of(text.stage.name) is not Role.CODE:
        return None
    return run.linked.kernels.named(text.stage.id, one.name)


def _location_word(run: RunReader, text: StageText, line: int, row: str, column: int) -> tuple[str, int] | None:
    """Below a kernel: the kernel's stage and the line (0-based) that ``loc``, ``!dbg`` or ``.loc`` stands for."""
    if not chain.is_below_kernel(text.stage):
        return None
    if not any(match.start() <= column <= match.end() for match in _LOCATION.finditer(row)):
        return None
    data = run.store.stage_data(run.report.run, text.stage.id)
    table = (data.get("lines") if isinstance(data, dict) else None) or []
    # A directive is before the instructions that it is about.
    for number in (line + 1, line + 2, line + 3):
        if found := source_lines(table, number):
            kernel = chain.kernel_of(text.stage)
            return (kernel, found[0] - 1) if kernel in run.stages else None
    return None
