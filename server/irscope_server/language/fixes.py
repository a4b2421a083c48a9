"""Quick fixes: the changes that a finding carries, and a comment that ignores it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from irscope.findings.kinds import compiled_code_error
from irscope.protocol import Range
from lsprotocol import types

from irscope_server.base import words
from irscope_server.base.texts import FileKey, file_key, to_units
from irscope_server.language.context import SourceContext
from irscope_server.language.diagnostics import diagnostic_of
from irscope_server.language.edits import placed_edits, workspace_edit
from irscope_server.language.tried_fixes import fixes_together, offered
from irscope_server.language.views import PlacedFinding

CHECK_WITHOUT_COMPILE = "irscope.server.checkWithoutCompile"
"""The command that any client can ask the server for."""
_CHECK = "Check Without Compile"


def actions_at(context: SourceContext, key: FileKey, params: types.CodeActionParams) -> list[types.CodeAction]:
    """The fixes of the findings in a range, the best of each first, then what ignores them."""
    only = params.context.only
    if only is not None and not any("quickfix".startswith(kind) for kind in only):
        return []
    lines = context.texts.lines(key)
    found = [one for one in context.views.causes(key) if _touches(one, params.range)]
    fixes = [action for one in found for action in _fixes(context, one, lines)]
    shown = [
        _show_kernel(context, params.text_document.uri, one, lines) for one in found if _has_kernels(context, key, one)
    ]
    checks = [_check(context, params.text_document.uri, one, lines) for one in found if _can_be_checked(context, one)]
    fixes += _fixes_at_calls(context, key, params.range, found)
    fixes += fixes_together(context, found)
    return [
        *fixes,
        *checks,
        *shown[:1],
        *(_ignore(context, one, lines) for one in found),
    ]


def findings_at(context: SourceContext, key: FileKey, range: types.Range) -> list[PlacedFinding]:
    """The findings whose fixes `actions_at` offers for a range."""
    found = [one for one in context.views.causes(key) if _touches(one, range)]
    return [*found, *(one for one, call in context.views.triggered_at(key) if _is_in(call, range))]


def _is_in(call: Range, range: types.Range) -> bool:
    return call.start.line - 1 <= range.end.line and range.start.line <= call.end.line - 1


def _touches(placed: PlacedFinding, range: types.Range) -> bool:
    return placed.line <= range.end.line and range.start.line <= placed.end_line


def _fixes_at_calls(
    context: SourceContext, key: FileKey, range: types.Range, found: Sequence[PlacedFinding]
) -> list[types.CodeAction]:
    """The fixes of recompilations that a call in the range triggered: the call is where the user sees the new size."""
    actions: list[types.CodeAction] = []
    for one, call in context.views.triggered_at(key):
        if _is_in(call, range) and one not in found:
            actions += _fixes(context, one, context.texts.lines(one.finding.file), here=False)
    return list({action.title + repr(action.edit): action for action in actions}.values())


def _fixes(
    context: SourceContext, placed: PlacedFinding, lines: Sequence[str], here: bool = True
) -> Iterator[types.CodeAction]:
    """A fix is offered only while every line that it changes is as it was when the finding was made.

    Args:
        lines: Lines of the file of the finding.
        here: Whether the diagnostic is where the fixes are asked for.
    """
    for offer in offered(context, placed):
        fix = offer.fix
        source = placed.texts.get(file_key(fix.file)) if fix.file else placed.source
        path = fix.file or placed.finding.file
        edits = placed_edits(context, path, source, fix.edits)
        if edits is None:
            continue
        yield types.CodeAction(
            title=words.one_line(offer.title(placed.finding.code)),
            kind=types.CodeActionKind.QuickFix,
            diagnostics=[diagnostic_of(context, placed, lines)] if here else None,
            is_preferred=here and offer.is_preferred,
            edit=workspace_edit(context, {path: edits}),
        )


def _ignore(context: SourceContext, placed: PlacedFinding, lines: Sequence[str]) -> types.CodeAction:
    """Adds ``# irscope: ignore[CODE]`` to the end of the line."""
    text = lines[placed.line].rstrip() if placed.line < len(lines) else ""
    at = types.Position(placed.line, to_units(text, len(text), context.encoding))
    code = words.one_line(placed.finding.code)  # it goes into the user's text: a comment it stays
    comment = f"  # irscope: ignore[{code}]"
    return types.CodeAction(
        title=f"Ignore {code} on this line",
        kind=types.CodeActionKind.QuickFix,
        diagnostics=[diagnostic_of(context, placed, lines)],
        edit=workspace_edit(context, {placed.finding.file: [types.TextEdit(types.Range(at, at), comment)]}),
    )


def _can_be_checked(context: SourceContext, placed: PlacedFinding) -> bool:
    """Whether it is an error of compiling that was not checked yet; in a workspace that is not trusted nothing runs."""
    return context.trusted and compiled_code_error.can_be_checked(placed.finding)


def _check(context: SourceContext, uri: str, placed: PlacedFinding, lines: Sequence[str]) -> types.CodeAction:
    """Runs the script without compile; VS Code's command shows what this says, any other client has the diagnostic."""
    command = "irscope.checkWithoutCompile" if context.rich_hovers else CHECK_WITHOUT_COMPILE
    return types.CodeAction(
        title=_CHECK,
        kind=types.CodeActionKind.QuickFix,
        diagnostics=[diagnostic_of(context, placed, lines)],
        command=types.Command(_CHECK, command, arguments=[{"uri": uri, "run": placed.run}]),
    )


def _has_kernels(context: SourceContext, key: FileKey, placed: PlacedFinding) -> bool:
    """Whether the newest deep run that has results for the file made kernels of the code that a finding is about."""
    for deep in context.results.deep_runs_touching(key)[:1]:
        line_map = context.views.line_map(deep.texts.get(key), context.texts.lines(key))
        lines = (line_map.exact(line - 1) for line in deep.kernels.get(key, ()))
        return any(line is not None and placed.line <= line <= placed.end_line for line in lines)
    return False


def _show_kernel(context: SourceContext, uri: str, placed: PlacedFinding, lines: Sequence[str]) -> types.CodeAction:
    """Opens the kernels of the lines that a finding is about; of the client, which may not know the command."""
    return types.CodeAction(
        title="Show Generated Kernel",
        kind=types.CodeActionKind.QuickFix,
        diagnostics=[diagnostic_of(context, placed, lines)],
        command=types.Command(
            "Show Generated Kernel", "irscope.showKernel", arguments=[{"uri": uri, "line": placed.line}]
        ),
    )
