"""What editors ask about the read-only documents of stages: definition, references, highlights, hover, symbols, folds."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from irscope.graphs import GRAPH_STAGES, ORIGIN_HEAD
from irscope.linetable import source_lines
from irscope.protocol import StageRef
from irscope.provenance import chain
from lsprotocol import types

from irscope_server.documents import SCHEME, language_id, parts_of
from irscope_server.linked import RunReader, document_uri
from irscope_server.messages import Encoded
from irscope_server.stage_hovers import hover_text
from irscope_server.stage_names import NameIndex, Occurrence, names_in, names_in_output_code
from irscope_server.stage_outline import folds_json, outline_json
from irscope_server.texts import from_units, split_lines, to_units

if TYPE_CHECKING:
    from irscope_server.server import IrscopeServer

T = TypeVar("T")

_MOST_TEXTS = 24


@dataclass(frozen=True)
class StageText:
    """A stage's text with its names."""

    stage: StageRef
    rows: Sequence[str]
    names: NameIndex
    kernels: tuple[tuple[int, int, str], ...] = ()
    """Of output code: first and last line (0-based) of each kernel's definition, and the kernel."""
    answers: dict[str, str] = field(default_factory=dict)
    """Big answers as JSON, by name."""


class StageTexts:
    """The last few texts that were asked for.  Belongs to the reader's thread."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str, int], StageText] = OrderedDict()

    def of(self, run: RunReader, stage: StageRef) -> StageText:
        key = (run.report.run, stage.id, stage.bytes)
        if key not in self._kept:
            self._kept[key] = _read(run, stage)
            while len(self._kept) > _MOST_TEXTS:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return self._kept[key]


def _read(run: RunReader, stage: StageRef) -> StageText:
    rows = split_lines(run.store.stage_text(run.report.run, stage.id))
    language = language_id(stage.language)
    if stage.name in GRAPH_STAGES:
        return StageText(stage, rows, names_in(rows, "python"))
    if stage.name == "output-code":
        kernels = []
        languages = {kernel.name: kernel.language for kernel in run.report.kernels}
        for item in run.linked.thread.items(stage.id).items:
            element = item.element
            if element.end_line > element.line:
                kernels.append((element.line - 1, element.end_line - 1, element.name))
        index = names_in_output_code(rows, [(a, b, language_id(languages.get(name, ""))) for a, b, name in kernels])
        return StageText(stage, rows, index, tuple(kernels))
    return StageText(stage, rows, names_in(rows, language))


# --- requests ---------------------------------------------------------------------------------------------------------


async def definition(server: IrscopeServer, params: types.DefinitionParams) -> list[types.Location] | None:
    """Where a name is made; of a call of a kernel its text, of ``# File: …`` the source, of ``loc`` the kernel's line."""
    uri, position = params.text_document.uri, params.position

    def find(run: RunReader, text: StageText) -> list[types.Location]:
        row, column = _place(text, position, server.encoding)
        if (match := _FILE.match(row)) is not None:
            line = max(0, int(match["line"]) - 1)
            return [types.Location(server.uri_of(match["file"]), _line_range(line))]
        if (kernel_line := _location_word(run, text, position.line, row, column)) is not None:
            stage, line = kernel_line
            return [types.Location(document_uri(run, stage), _line_range(line))]
        one = text.names.at(position.line, column)
        if one is None:
            return []
        if (kernel := _kernel_of(run, text, one)) is not None:
            return [types.Location(document_uri(run, kernel), _line_range(0))]
        made = text.names.definition(one)
        return [] if made is None else [types.Location(uri, _range(text, made, server.encoding))]

    return await _ask(server, uri, find)


async def references(server: IrscopeServer, params: types.ReferenceParams) -> list[types.Location] | None:
    uri, position = params.text_document.uri, params.position
    with_definition = params.context.include_declaration

    def find(run: RunReader, text: StageText) -> list[types.Location]:
        _, column = _place(text, position, server.encoding)
        one = text.names.at(position.line, column)
        found = [] if one is None else text.names.references(one)
        return [
            types.Location(uri, _range(text, other, server.encoding))
            for other in found
            if with_definition or not other.defines
        ]

    return await _ask(server, uri, find)


async def highlights(
    server: IrscopeServer, params: types.DocumentHighlightParams
) -> list[types.DocumentHighlight] | None:
    position = params.position

    def find(run: RunReader, text: StageText) -> list[types.DocumentHighlight]:
        _, column = _place(text, position, server.encoding)
        one = text.names.at(position.line, column)
        kinds = {True: types.DocumentHighlightKind.Write, False: types.DocumentHighlightKind.Read}
        return [
            types.DocumentHighlight(_range(text, other, server.encoding), kinds[other.defines])
            for other in ([] if one is None else text.names.references(one))
        ]

    return await _ask(server, params.text_document.uri, find)


async def hover(server: IrscopeServer, params: types.HoverParams) -> types.Hover | None:
    position = params.position

    def find(run: RunReader, text: StageText) -> types.Hover | None:
        _, column = _place(text, position, server.encoding)
        one = text.names.at(position.line, column)
        found = hover_text(run, text.stage, position.line + 1, one.name if one else "", server.uri_of)
        if not found:
            return None
        place = _range(text, one, server.encoding) if one is not None else None
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, found), place)

    return await _ask(server, params.text_document.uri, find)


async def symbols(server: IrscopeServer, params: types.DocumentSymbolParams) -> Encoded | None:
    return await _encoded(server, params.text_document.uri, "outline", outline_json)


async def folds(server: IrscopeServer, params: types.FoldingRangeParams) -> Encoded | None:
    return await _encoded(server, params.text_document.uri, "folds", lambda run, text, encoding: folds_json(text))


async def _encoded(
    server: IrscopeServer, uri: str, name: str, make: Callable[[RunReader, StageText, str], str]
) -> Encoded | None:
    """An answer as JSON, which is made once for each text."""

    def find(run: RunReader, text: StageText) -> Encoded:
        if name not in text.answers:
            text.answers[name] = make(run, text, server.encoding)
        return Encoded(text.answers[name])

    return await _ask(server, uri, find)


async def _ask(server: IrscopeServer, uri: str, question: Callable[[RunReader, StageText], T]) -> T | None:
    """Asks about the text of a stage; nothing for a document of another kind, or one that is gone."""
    if not uri.startswith(f"{SCHEME}:"):
        return None
    try:
        run, candidates = parts_of(uri)
        return await server.stages.ask(
            run, lambda reader: question(reader, server.stage_texts.of(reader, reader.stage_of(candidates)))
        )
    except LookupError:
        return None


def registrations() -> list[types.Registration]:
    """The features above for the documents of our scheme alone, for clients that can be told so."""
    options = types.TextDocumentRegistrationOptions(document_selector=[types.TextDocumentFilterScheme(scheme=SCHEME)])
    methods = [*METHODS, types.TEXT_DOCUMENT_HOVER]
    return [types.Registration(f"irscope-{method}", method, options) for method in methods]


METHODS: dict[str, Callable[[Any, Any], Awaitable[Any]]] = {
    types.TEXT_DOCUMENT_DEFINITION: definition,
    types.TEXT_DOCUMENT_REFERENCES: references,
    types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT: highlights,
    types.TEXT_DOCUMENT_DOCUMENT_SYMBOL: symbols,
    types.TEXT_DOCUMENT_FOLDING_RANGE: folds,
}
"""Hovers are not among them: those of Python files have a handler of their own, which asks `hover` too."""


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
    if text.stage.name != "output-code":
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
    # A directive stands before the instructions that it is about.
    for number in (line + 1, line + 2, line + 3):
        if found := source_lines(table, number):
            kernel = chain.kernel_of(text.stage)
            return (kernel, found[0] - 1) if kernel in run.stages else None
    return None
