"""Shapes, dtypes and symbolic sizes of what compiled lines give, as inlay hints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from irscope.vocabulary.visible import visible
from lsprotocol import types

from irscope_server.base.context import Document
from irscope_server.base.functions import Function
from irscope_server.base.texts import from_bytes, to_units
from irscope_server.language.context import SourceContext
from irscope_server.language.line_facts import Op, type_text
from irscope_server.language.line_views import LineView, line_view
from irscope_server.language.statements import Statement, statement_of_line
from irscope_server.language.type_labels import tooltip, value_label

_LONGEST = 60


async def inlay_hints_of(context: SourceContext, document: Document, span: types.Range) -> list[types.InlayHint]:
    """The hints in a range of a document: one at the end of each statement, one after each parameter.

    Only in functions that are as they ran: what an edit may have made untrue is not shown.
    """
    if not (await context.settings_for(document.uri)).inlay_hints:
        return []
    view = await line_view(context, document.key)
    if view is None or (outline := view.outline) is None:
        return []
    now = context.texts.lines(document.key)
    hints = []
    intact: dict[Function, bool] = {}
    for line, column, label, told in [*_values(view), *_parameters(view)]:
        place = view.line_map.exact(line)
        if place is None or not span.start.line <= place <= span.end.line:
            continue
        function = _around(outline.functions, line + 1)
        if function is not None and not intact.setdefault(function, view.is_intact(function)):
            continue
        position = types.Position(place, to_units(now[place], column, context.encoding))
        hints.append(
            types.InlayHint(
                position,
                visible(label),
                kind=types.InlayHintKind.Type,
                tooltip=types.MarkupContent(types.MarkupKind.Markdown, told),
                padding_left=not label.startswith(":"),
            )
        )
    return hints


_Hint = tuple[int, int, str, str]
"""Line (0-based) and column in the text as it ran, label, tooltip."""


def _values(view: LineView) -> Iterator[_Hint]:
    by_statement: dict[Statement, list[int]] = {}
    statements = statement_of_line(view.text)
    for line in sorted(view.facts.ops.get(view.key, {})):
        if (statement := statements.get(line - 1)) is not None:
            by_statement.setdefault(statement, []).append(line - 1)
    for statement in by_statement:
        ops = view.ops_at(range(statement.line, statement.end_line + 1))
        if (found := value_label(statement.values, ops)) is not None:
            yield statement.end_line, statement.end_column, _short(found[0]), tooltip(found[1], view.facts)


def _parameters(view: LineView) -> Iterator[_Hint]:
    """Hints for the functions that were compiled themselves: what they are called with is known."""
    if (outline := view.outline) is None:
        return
    newest: dict[Function, str] = {}
    for compile in view.ended.report.compiles:
        for function in outline.functions:
            if function.first_line == compile.line and function.name == compile.function:
                newest[function] = compile.id
    for function, compile_id in newest.items():
        arguments = view.facts.arguments.get(compile_id, {})
        given = function.arguments
        for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs):
            detail = arguments.get(argument.arg)
            if detail is None or argument.annotation is not None or argument.end_col_offset is None:
                continue
            line = argument.lineno - 1
            column = from_bytes(view.lines[line], argument.end_col_offset)
            op = Op(compile_id, argument.arg, "argument", detail, line + 1, ())
            yield line, column, f": {_short(type_text(detail))}", tooltip([op], view.facts)


def _around(functions: Sequence[Function], line: int) -> Function | None:
    """The innermost function around a line (1-based)."""
    around = [f for f in functions if f.first_line <= line <= f.end_line and f.name != "<lambda>"]
    return max(around, key=lambda f: f.first_line, default=None)


def _short(label: str) -> str:
    return label if len(label) <= _LONGEST else f"{label[: _LONGEST - 1]}…"
