"""Edits of texts as they ran, placed in the texts as they are now, and what a client gets to apply them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from irscope.protocol import Edit
from irscope.usercode.reading import is_read_only
from lsprotocol import types

from irscope_server.base.texts import to_units
from irscope_server.language.context import SourceContext
from irscope_server.running.proofs import Combined

_ANNOTATION = "irscope"
_ASKS = "irscope.asks"
_NOTHING = types.Range(types.Position(0, 0), types.Position(0, 0))

Changes = dict[str, list[types.TextEdit]]
"""Edits by path."""


def placed_edits(
    context: SourceContext, path: str, source: Sequence[str] | None, edits: Sequence[Edit]
) -> list[types.TextEdit] | None:
    """Edits in the text of a file as it is now; None if one of the lines that they touch has changed since ``source``."""
    lines = context.texts.lines(path)
    placed = [_placed_edit(context, source, edit, lines) for edit in edits]
    whole = [edit for edit in placed if edit is not None]
    return whole if len(whole) == len(placed) else None


def _placed_edit(
    context: SourceContext, source: Sequence[str] | None, edit: Edit, lines: Sequence[str]
) -> types.TextEdit | None:
    line_map = context.views.line_map(source, lines)
    first, last = edit.range.start.line - 1, edit.range.end.line - 1
    start = line_map.exact(first)
    if start is None:
        return None
    # One that ends where a line begins does not touch that line; between the first and the last all must be as it was.
    touched = range(first, last if edit.range.end.column == 0 and last > first else last + 1)
    if any(line_map.exact(line) != start + line - first for line in touched) or start + last - first >= len(lines):
        return None
    places = ((start, edit.range.start.column), (start + last - first, edit.range.end.column))
    begin, end = (types.Position(line, to_units(lines[line], column, context.encoding)) for line, column in places)
    return types.TextEdit(types.Range(begin, end), edit.text)


def placed_together(context: SourceContext, combined: Combined) -> Changes | None:
    """The edits of a proven whole; None if a file does not take them: the rest of them was not proven without it."""
    changes: Changes = {}
    for path, edits in combined.edits.items():
        placed = placed_edits(context, path, combined.texts.get(path), edits)
        if placed is None or (len(combined.edits) > 1 and is_read_only(path)):
            return None
        changes[path] = placed
    return changes or None


def why_not_placed(context: SourceContext, combined: Combined) -> str:
    """The first file that does not take the edits of a proven whole, and why; empty if all do."""
    for path, edits in combined.edits.items():
        name = os.path.basename(path)
        if not context.texts.is_open(path) and not os.path.exists(path):
            return f"{name} (deleted)"
        if placed_edits(context, path, combined.texts.get(path), edits) is None:
            return f"{name} (changed since its run)"
        if is_read_only(path):
            return f"{name} (read-only)"
    return ""


def workspace_edit(
    context: SourceContext, changes: Mapping[str, list[types.TextEdit]], review: types.ChangeAnnotation | None = None
) -> types.WorkspaceEdit:
    """What a client applies.

    Args:
        changes: By path.  Where the client can, each document has its version: the edits do not fit a text that came
            later.
        review: What the client shows before it applies them; for those that have `reviews_edits`.  Clients ask if one
            edit needs to be confirmed, and VS Code leaves out such edits unless each is ticked.  So an edit that
            changes nothing is the one to confirm.
    """
    if not context.edits_versions:
        return types.WorkspaceEdit({context.uri_of(path): edits for path, edits in changes.items()})
    documents = [
        types.TextDocumentEdit(
            types.OptionalVersionedTextDocumentIdentifier(context.uri_of(path), context.version_of(path)),
            [
                types.AnnotatedTextEdit(_ANNOTATION, edit.range, edit.new_text) if review is not None else edit
                for edit in edits
            ],
        )
        for path, edits in changes.items()
    ]
    if review is None or not documents:
        return types.WorkspaceEdit(document_changes=documents)
    asks = types.ChangeAnnotation("Nothing is changed before you apply it", True, "This row changes nothing")
    documents[0].edits = [types.AnnotatedTextEdit(_ASKS, _NOTHING, ""), *documents[0].edits]
    annotations = {_ANNOTATION: review, _ASKS: asks}
    return types.WorkspaceEdit(document_changes=documents, change_annotations=annotations)
