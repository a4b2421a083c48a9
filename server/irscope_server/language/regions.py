"""Which lines of a file are compiled, broken, skipped or in a kernel: what an editor marks in the source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from irscope.findings.kinds import graph_break, skipped_frame
from irscope.protocol import CompileOutcome, Kernel
from irscope.vocabulary import units

from irscope_server.base.functions import Function, Outline, function_of
from irscope_server.base.params import UriParams
from irscope_server.base.results import Region, RegionKind, RegionsResult
from irscope_server.base.texts import file_key
from irscope_server.language.context import SourceContext
from irscope_server.language.line_views import LineView, kernels_by_line, kernels_text, line_view
from irscope_server.language.measured_lines import lines_with_time
from irscope_server.running.measured import Measured

_MOST_NAMES = 3


async def regions(context: SourceContext, params: UriParams) -> RegionsResult:
    """The regions of a document, from top to bottom; broken and skipped ones lie inside compiled ones.

    They move along with edits; a function whose ``def`` was edited has none until the next run.
    """
    path = context.path_of(params.uri)
    if path is None:
        return RegionsResult(None, False, ())
    view = await line_view(context, path)
    found: list[Region] = list(_functions(view)) if view else []
    found += _breaks(context, path)
    found += _kernels(kernels_by_line(context, path))
    if context.settings.measured_time:
        found += _measured(context, path, await context.profiles.touching(path))
    found.sort(key=lambda region: (region.line, -region.end_line, region.kind))
    return RegionsResult(view.ended.run if view else None, view.stale if view else False, tuple(found))


def _functions(view: LineView) -> Iterator[Region]:
    """Functions with their own compiles, and those that were compiled inside of them."""
    if (outline := view.outline) is None:
        return
    compiled: dict[Function, list[str]] = {}
    skipped: dict[Function, list[str]] = {}
    for compile in view.ended.report.compiles:
        here = file_key(compile.file) == view.key
        function = function_of(outline, compile.function, compile.line) if here else None
        if function is None:
            continue
        if compile.outcome in (CompileOutcome.SKIPPED, CompileOutcome.ERROR):
            skipped.setdefault(function, []).append(compile.id)
        else:
            compiled.setdefault(function, []).append(compile.id)
    for function, ids in _inlined(view, outline):
        compiled.setdefault(function, []).extend(ids)
    for function, ids in compiled.items():
        yield from _moved(view, function, "compiled", f"Compiled, in {_compiles(ids)}")
    for function, ids in skipped.items():
        if function not in compiled:
            yield from _moved(view, function, "skipped", f"Not compiled: runs as plain Python ({_compiles(ids)})")


def _inlined(view: LineView, outline: Outline) -> Iterator[tuple[Function, Iterable[str]]]:
    """Functions that have operations in a graph or were walked through, with the compiles; no lambdas."""
    for line, ops in view.facts.ops.get(view.key, {}).items():
        around = [f for f in outline.functions if f.first_line <= line <= f.end_line and f.name != "<lambda>"]
        if around:
            yield max(around, key=lambda f: f.first_line), [op.compile for op in ops]
    for (first_line, name), walks in view.facts.functions.get(view.key, {}).items():
        function = function_of(outline, name, first_line)
        if function is not None and function.name != "<lambda>":
            yield function, walks


def _moved(view: LineView, function: Function, kind: RegionKind, text: str) -> Iterator[Region]:
    """The function where it is now; none if its ``def`` was edited."""
    if view.line_map.exact(function.line - 1) is not None:
        line, end = view.line_map.near(function.first_line - 1), view.line_map.near(function.end_line - 1)
        yield Region(kind, line, max(line, end), text, ())


def _breaks(context: SourceContext, path: str) -> Iterator[Region]:
    """Where a graph was cut, and calls that were skipped."""
    for placed in context.views.findings(path):
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


def _measured(context: SourceContext, path: str, measured: Measured | None) -> Iterator[Region]:
    """Lines with measured time, each with its share of what the dearest one takes."""
    rows = lines_with_time(context, path, measured)
    most = max((one.measured.seconds for one in rows), default=0.0)
    for one in rows:
        heat = one.measured.seconds / most if most else 0.0
        yield Region(
            "measured", one.line, one.line, units.duration(one.measured.seconds), one.measured.kernels, round(heat, 3)
        )


def _names(kernels: tuple[Kernel, ...]) -> tuple[str, ...]:
    return tuple(kernel.name for kernel in kernels)


def _kernel_text(kernels: tuple[Kernel, ...]) -> str:
    shown = ", ".join(_names(kernels)[:_MOST_NAMES])
    more = f" and {len(kernels) - _MOST_NAMES} more" if len(kernels) > _MOST_NAMES else ""
    return f"In {kernels_text(kernels)}: {shown}{more}"


def _compiles(ids: Iterable[str]) -> str:
    known = list(dict.fromkeys(ids))
    more = f" and {len(known) - _MOST_NAMES} more" if len(known) > _MOST_NAMES else ""
    return f"compile{'s' if len(known) > 1 else ''} {', '.join(known[:_MOST_NAMES])}{more}"
