"""Which lines of a file are compiled, broken, skipped or in a kernel: what an editor marks in the source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from irscope.findings.kinds import graph_break, skipped_frame
from irscope.protocol import CompileOutcome, Kernel
from irscope.vocabulary import units

from irscope_server.base.functions import Function, Outline, function_of
from irscope_server.base.params import UriParams
from irscope_server.base.results import Region, RegionKind, RegionsResult
from irscope_server.base.texts import FileKey
from irscope_server.language.context import SourceContext
from irscope_server.language.line_views import LineView, kernels_by_line, kernels_text, line_view, short_kernel
from irscope_server.language.measured_lines import lines_with_time
from irscope_server.running.measured import Measured

_MOST_NAMES = 3


async def regions(context: SourceContext, params: UriParams) -> RegionsResult:
    """The regions of a document, from top to bottom; broken and skipped ones lie inside compiled ones.

    They move along with edits; a function whose ``def`` was edited has none until the next run.
    """
    document = context.document(params.uri)
    if document is None:
        return RegionsResult(None, False, ())
    view = await line_view(context, document.key)
    shown: list[Region] = list(_functions(view)) if view else []
    shown += _breaks(context, document.key)
    shown += _kernels(kernels_by_line(context, document.key)[1])
    if context.settings.measured_time:
        shown += _measured(context, document.key, await context.profiles.touching(document.key))
    shown.sort(key=lambda region: (region.line, -region.end_line, region.kind))
    return RegionsResult(view.ended.run if view else None, view.stale if view else False, tuple(shown))


def _functions(view: LineView) -> Iterator[Region]:
    """Functions with their own compiles, and those that were compiled inside of them."""
    if (outline := view.outline) is None:
        return
    compiled, skipped = _by_outcome(view, outline)
    for line, ops in view.facts.ops.get(view.key, {}).items():
        around = [f for f in outline.functions if f.first_line <= line <= f.end_line and f.name != "<lambda>"]
        if around:
            inner = max(around, key=lambda f: f.first_line)
            compiled.setdefault(inner, []).extend(op.compile for op in ops)
    for (first_line, name), walks in view.facts.functions.get(view.key, {}).items():
        function = function_of(outline, name, first_line)
        if function is not None and function.name != "<lambda>":
            compiled.setdefault(function, []).extend(walks)
    for function, ids in compiled.items():
        yield from _moved(view, function, "compiled", f"Compiled, in {_compiles(ids)}")
    for function, ids in skipped.items():
        if function not in compiled:
            yield from _moved(view, function, "skipped", f"Not compiled: runs as plain Python ({_compiles(ids)})")


def _by_outcome(view: LineView, outline: Outline) -> tuple[dict[Function, list[str]], dict[Function, list[str]]]:
    """The functions with their own compiles: those that were compiled, and those that were not."""
    compiled: dict[Function, list[str]] = {}
    skipped: dict[Function, list[str]] = {}
    for compile in view.ended.compiles.get(view.key, ()):
        function = function_of(outline, compile.function, compile.line)
        if function is not None:
            is_skipped = compile.outcome in (CompileOutcome.SKIPPED, CompileOutcome.ERROR)
            (skipped if is_skipped else compiled).setdefault(function, []).append(compile.id)
    return compiled, skipped


def _moved(view: LineView, function: Function, kind: RegionKind, text: str) -> Iterator[Region]:
    """The function where it is now; none if its ``def`` was edited."""
    if view.line_map.exact(function.line - 1) is not None:
        line, end = view.line_map.near(function.first_line - 1), view.line_map.near(function.end_line - 1)
        yield Region(kind, line, max(line, end), text, ())


def _breaks(context: SourceContext, key: FileKey) -> Iterator[Region]:
    """Where a graph was cut, and calls that were skipped."""
    for placed in context.views.findings(key):
        if placed.finding.kind == graph_break.KIND.id:
            yield Region("broken", placed.line, placed.end_line, placed.finding.message, ())
        elif placed.finding.kind == skipped_frame.KIND.id:
            yield Region("skipped", placed.line, placed.end_line, placed.finding.message, ())


def _kernels(by_line: dict[int, tuple[Kernel, ...]]) -> Iterator[Region]:
    """A region for each run of lines with the same kernels."""
    begin, last = -1, -2
    kernels: tuple[Kernel, ...] = ()
    for line in [*sorted(by_line), -1]:
        here = by_line.get(line, ())
        if line == last + 1 and _names(here) == _names(kernels):
            last = line
            continue
        if kernels:
            yield Region("kernel", begin, last, _kernel_text(kernels), _names(kernels))
        begin, last, kernels = line, line, here


def _measured(context: SourceContext, key: FileKey, measured: Measured | None) -> Iterator[Region]:
    """Lines with measured time, each with its share of what the dearest one takes."""
    rows = lines_with_time(context, key, measured)
    most = max((row.measured.seconds for row in rows), default=0.0)
    for row in rows:
        heat = row.measured.seconds / most if most else 0.0
        yield Region(
            "measured", row.line, row.line, units.duration(row.measured.seconds), row.measured.kernels, round(heat, 3)
        )


def _names(kernels: tuple[Kernel, ...]) -> tuple[str, ...]:
    return tuple(kernel.name for kernel in kernels)


def _kernel_text(kernels: tuple[Kernel, ...]) -> str:
    shown = ", ".join(map(short_kernel, _names(kernels)[:_MOST_NAMES]))
    more = f" and {len(kernels) - _MOST_NAMES} more" if len(kernels) > _MOST_NAMES else ""
    return f"In {kernels_text(kernels)}: {shown}{more}"


def _compiles(ids: Iterable[str]) -> str:
    compiles = list(dict.fromkeys(ids))
    more = f" and {len(compiles) - _MOST_NAMES} more" if len(compiles) > _MOST_NAMES else ""
    return f"compile{'s' if len(compiles) > 1 else ''} {', '.join(compiles[:_MOST_NAMES])}{more}"
