"""What is said when the pointer rests on a compiled line: its operations, what they give, their kernels, their cost."""

from __future__ import annotations

import os
from collections.abc import Sequence

from irscope.comparing.ranks.exposure import OverlapRow, beside, overlap_rows, way
from irscope.protocol import CollectiveOverlap, Compile, Kernel, Origin, Report
from irscope.protocol.symbols import symbols_in
from irscope.provenance import chain
from irscope.usercode.user_files import is_user_file
from irscope.vocabulary import units

from irscope_server.base import words
from irscope_server.base.stage_uris import uri_of_stage
from irscope_server.base.texts import FileKey, file_key
from irscope_server.language.context import SourceContext
from irscope_server.language.line_facts import LineFacts, Op, short_target
from irscope_server.language.line_views import LineView, kernels_of_lines, kernels_text, line_view, short_kernel
from irscope_server.language.statements import Statement, statement_of_line
from irscope_server.language.type_labels import ops_in_order, symbol_rows, value_label

_MOST_OPS = 5
_MOST_KERNELS = 4
_MOST_COLLECTIVES = 3
_MOST_CALLERS = 4


async def line_text(context: SourceContext, key: FileKey, line: int, column: int) -> str:
    """A few lines of Markdown on the statement at a place (0-based line) of the text as it is now; mostly empty."""
    now = context.texts.lines(key)
    statement = statement_of_line("\n".join(now)).get(line)
    if statement is None or not _is_code(statement, now[line], line, column):
        return ""
    view = await line_view(context, key)
    if view is None:
        return ""
    back = context.views.line_map(now, view.lines)
    here = range(statement.line, statement.end_line + 1)
    ran = [old for number in here if (old := back.exact(number)) is not None]
    ops = [op for old in ran for op in view.ops_at(range(old, old + 1))]
    overlaps = view.facts.overlaps.get(view.key, {})
    lines = {old + 1 for old in ran}
    texts = [
        overlap_text([overlap for old in ran for overlap in overlaps.get(old + 1, ())]),
        calls_text(context, view, lines, {op.compile for op in ops}),
    ]
    run, kernels = kernels_of_lines(context, key, here)
    if ops:  # else a collective may be there all the same: a function of PyTorch's starts it
        flops = sum(view.facts.flops.get(view.key, {}).get(old + 1, 0) for old in ran)
        texts.insert(0, statement_text(statement, ops, _kernels_row(run, kernels), flops, view.facts))
    elif kernels and not texts[-1]:  # what lays out an input comes from the first line that looks at it
        texts += [_kernels_row(run, kernels), calls_text(context, view, lines, {kernel.compile for kernel in kernels})]
    said = "\n\n".join(filter(None, texts))
    note = "\n\n*Before your edit.*" if view.stale else ""
    return said + note if said else ""


def calls_text(context: SourceContext, view: LineView, lines: set[int], within: set[str]) -> str:
    """What lines (1-based) of a file call that was compiled, and where the compiles are called that they are in."""
    report = (context.results.deep(view.ended.key) or view.ended).report
    called = [
        _called_text(report, compile, is_backward)
        for compile in report.compiles
        for is_backward, places in ((False, compile.callers), (True, compile.backward_callers))
        if compile.id not in within
        and any(place.line in lines and file_key(place.file) == view.key for place in places)
    ]
    calls = {_users_call(compile): compile.title for compile in report.compiles if compile.id in within}
    for call, title in list(calls.items())[:_MOST_CALLERS]:
        if call is not None and file_key(call.file) != view.key:
            label = words.markdown(f"{os.path.basename(call.file)}:{call.line}")
            place = f"[{label}]({context.uri_of(call.file)}#L{call.line})"
            called.append(f"In {words.code_span(title)}, called from {place}")
    return "\n\n".join(called[:_MOST_CALLERS])


def _called_text(report: Report, compile: Compile, is_backward: bool) -> str:
    """That a line calls a compile, or runs its backward, with its kernels."""
    of_compile = (kernel for kernel in report.kernels if kernel.compile == compile.id)
    kernels = [kernel for kernel in of_compile if not is_backward or chain.is_of_backward(kernel.stage)]
    count = f", {kernels_text(kernels)}" if kernels else ""
    return f"{'Runs the backward of' if is_backward else 'Calls'} {words.code_span(compile.title)}{count}"


def _users_call(compile: Compile) -> Origin | None:
    """The innermost of the user's lines that call a compile."""
    return next((line for line in compile.callers if is_user_file(line.file)), None)


def _is_code(statement: Statement, text: str, line: int, column: int) -> bool:
    """Whether a column of a statement's line is not after its end, nor in a comment."""
    if line == statement.end_line and column > statement.end_column:
        return False
    return bool(text[column:].strip()) or column < len(text.rstrip())


def overlap_text(overlaps: Sequence[CollectiveOverlap]) -> str:
    """What runs beside the collectives of a line; empty without any."""
    rows = overlap_rows(overlaps)
    said = [_overlap_row(row) for row in rows[:_MOST_COLLECTIVES]]
    more = len(rows) - len(said)
    return "\n\n".join([*said, *([f"and {units.count(more, 'more collective')}"] if more else [])])


def _overlap_row(row: OverlapRow) -> str:
    first = row.first
    calls = f" ×{row.calls}" if row.calls > 1 else ""
    among = f"among {units.count(first.group_size, 'rank')}, " if first.group_size is not None else ""
    sent = f"sends {units.size(row.sent)}, " if row.sent is not None else ""
    only = ": the rank only waits" if first.operations == 0 else ""
    way_down = f" ({way(first)})" if way(first) else ""
    said = f"{among}{sent}beside it: {beside(first)}{only}{way_down}"
    return f"{words.code_span(row.title)}{calls} {words.markdown(said)}"


def statement_text(statement: Statement, ops: list[Op], kernels: str, flops: int, facts: LineFacts) -> str:
    """The operations of the newest compile that has some, what they give, the kernels that they are in; empty if
    they only look at sizes."""
    label = value_label(statement.values, ops)
    if label is None and not kernels and not flops:
        return ""
    compile = label[1][0].compile if label else ops[-1].compile
    mine = ops_in_order([op for op in ops if op.compile == compile])
    names = list(dict.fromkeys(short_target(op.target) for op in mine))
    shown = " → ".join(words.code_span(name) for name in names[:_MOST_OPS]) + (" → …" if len(names) > _MOST_OPS else "")
    parts = [shown]
    if label is not None:
        parts.append(f"gives {words.code_span(label[0])}")
    if flops:
        parts.append(units.flops(flops))
    rows = [" · ".join(parts)]
    if kernels:
        rows.append(kernels)
    all_symbols = facts.symbols.get(compile, {})
    symbols = [all_symbols[name] for name in symbols_in(label[0] if label else "") if name in all_symbols]
    return "\n\n".join([*rows, *symbol_rows(symbols)])


def _kernels_row(run: str, kernels: tuple[Kernel, ...]) -> str:
    """The kernels of a line with links to their texts; empty without any."""
    if not kernels:
        return ""
    links = ", ".join(_kernel_link(run, kernel) for kernel in kernels[:_MOST_KERNELS])
    more = f" and {len(kernels) - _MOST_KERNELS} more" if len(kernels) > _MOST_KERNELS else ""
    return f"In {kernels_text(kernels)}: {links}{more}"


def _kernel_link(run: str, kernel: Kernel) -> str:
    name = words.code_span(short_kernel(kernel.name))
    told = f" ({kernel.checked})" if kernel.checked else ""
    return f"[{name}]({uri_of_stage(run, kernel.stage, kernel.language)}){told}" if kernel.is_generated else name
