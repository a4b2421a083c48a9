"""The outline of a stage's text, and the parts that can be folded."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from irscope.pipelines.registry import stage_kind
from lsprotocol import types

from irscope_server.base.stage_uris import language_id
from irscope_server.base.texts import to_units
from irscope_server.stages.linked import RunReader
from irscope_server.stages.texts import StageText

_MOST_SYMBOLS = 5000

_HEADS: dict[str, tuple[tuple[re.Pattern[str], types.SymbolKind], ...]] = {
    "python": (
        (re.compile(r"^class (?P<name>\w+|<\w+>)"), types.SymbolKind.Class),
        (re.compile(r"^\s*(?:async )?def (?P<name>\w+)\("), types.SymbolKind.Function),
    ),
    "cpp": (
        (re.compile(r"^(?:extern \"C\"\s+)?(?:\w[\w:<>*& ]*\s)\*?(?P<name>\w+)\([^;]*$"), types.SymbolKind.Function),
    ),
    "mlir": (
        (re.compile(r"^\s*(?:\w+\.)?func\b[^@]*(?P<name>@[\w$.-]+)\("), types.SymbolKind.Function),
        (re.compile(r"^(?P<name>module)\b"), types.SymbolKind.Module),
    ),
    "llvm": ((re.compile(r"^define\b[^@]*(?P<name>@[-\w$.]+)\("), types.SymbolKind.Function),),
    "ptx": (
        (re.compile(r"^(?:\.\w+\s+)*\.(?:entry|func)\s+(?:\(.*?\)\s*)?(?P<name>[\w$]+)"), types.SymbolKind.Function),
        (re.compile(r"^(?P<name>\$L__BB\w+):"), types.SymbolKind.Key),
    ),
    "sass": ((re.compile(r"^\s*(?P<name>[.\w$]+):"), types.SymbolKind.Key),),
    "asm": ((re.compile(r"^(?P<name>[^\s:#]+):"), types.SymbolKind.Function),),
}


def outline_json(run: RunReader, text: StageText, encoding: str) -> str:
    """The answer to ``textDocument/documentSymbol`` as JSON: a big graph has thousands of nodes."""
    return json.dumps(list(_symbols(run, text, encoding)))


def folds_json(text: StageText) -> str:
    """The answer to ``textDocument/foldingRange`` as JSON."""
    return json.dumps(list(_folds(text)))


def _symbols(run: RunReader, text: StageText, encoding: str) -> Iterator[dict[str, Any]]:
    last = len(text.rows) - 1
    if stage_kind(text.stage.name).is_graph:
        items = run.linked.thread.items(text.stage.id).items[:_MOST_SYMBOLS]
        children = [
            _symbol(text, one.element.line - 1, one.element.line - 1, one.element.name, _KINDS.get(one.op), encoding)
            for one in items
        ]
        head = next((n for n, row in enumerate(text.rows) if row.lstrip().startswith("def forward(")), 0)
        forward = _symbol(text, head, last, "forward", types.SymbolKind.Function, encoding)
        forward["children"] = [child for child in children if head <= child["range"]["start"]["line"]]
        yield forward
        return
    for first, end, name in text.kernels:
        yield _symbol(text, first, end, name, types.SymbolKind.Function, encoding)
    found: list[tuple[int, str, types.SymbolKind]] = []
    for number, row in enumerate(text.rows):
        if any(first <= number <= end for first, end, _ in text.kernels):
            continue
        for pattern, kind in _HEADS.get(language_id(text.stage.language), ()):
            if (match := pattern.match(row)) is not None:
                found.append((number, match["name"], kind))
                break
        if len(found) >= _MOST_SYMBOLS:
            break
    for at, (number, name, kind) in enumerate(found):
        end = max(number, found[at + 1][0] - 1 if at + 1 < len(found) else last)
        yield _symbol(text, number, end, name, kind, encoding)


_KINDS = {
    "placeholder": types.SymbolKind.Variable,
    "get_attr": types.SymbolKind.Property,
    "output": types.SymbolKind.Event,
}


def _symbol(
    text: StageText, first: int, last: int, name: str, kind: types.SymbolKind | None, encoding: str
) -> dict[str, Any]:
    row = text.rows[first] if first < len(text.rows) else ""
    end_row = text.rows[last] if last < len(text.rows) else ""
    start = max(0, row.find(name))

    def place(line: int, column: int) -> dict[str, int]:
        return {"line": line, "character": column}

    return {
        "name": name,
        "kind": (kind or types.SymbolKind.Operator).value,
        "range": {"start": place(first, 0), "end": place(last, to_units(end_row, len(end_row), encoding))},
        "selectionRange": {
            "start": place(first, to_units(row, start, encoding)),
            "end": place(first, to_units(row, min(len(row), start + len(name)), encoding)),
        },
    }


_TABLE = re.compile(r"^(?:#loc\w*|![0-9]+|#\w+) =|^declare\b|^attributes\b|^\s*\.(?:file|section|b8)\b")
_INCLUDES = re.compile(r"^(?:import|from|#include)\b")


def _folds(text: StageText) -> Iterator[dict[str, Any]]:
    """What is indented deeper than the line above it, and tables: locations, metadata, imports."""
    open_lines: list[tuple[int, int]] = []
    last = -1
    for number, row in enumerate([*text.rows, "end"]):
        stripped = row.strip()
        if not stripped:
            continue
        depth = len(row) - len(row.lstrip()) if number < len(text.rows) else -1
        while open_lines and open_lines[-1][0] >= depth:
            _, first = open_lines.pop()
            if last > first:
                yield _fold(first, last)
        open_lines.append((depth, number))
        last = number
    start: int | None
    for pattern, kind in ((_TABLE, types.FoldingRangeKind.Region), (_INCLUDES, types.FoldingRangeKind.Imports)):
        start = None
        for number, row in enumerate([*text.rows, ""]):
            if pattern.match(row):
                start = number if start is None else start
            elif start is not None:
                if number - 1 > start:
                    yield {**_fold(start, number - 1), "kind": kind.value}
                start = None
    for first, end, _ in text.kernels:
        yield _fold(first, end)


def _fold(first: int, last: int) -> dict[str, Any]:
    return {"startLine": first, "endLine": last}
