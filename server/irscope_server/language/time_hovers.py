"""What is said of a line's measured time when the pointer rests on it: its kernels, what they reach, and why not more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from irscope.findings.kinds import missed_fusion
from irscope.profiling.profile import MeasuredKernel, Profile, bound_text
from irscope.protocol import Finding, Origin, Related, Report
from irscope.vocabulary import units

from irscope_server.base import words
from irscope_server.base.texts import FileKey, by_file
from irscope_server.language.context import SourceContext
from irscope_server.language.measured_lines import lines_with_time
from irscope_server.running.measured import Measured

_MOST_KERNELS = 8
_MOST_REASONS = 3
_MOST_LINES = 6


def time_text(context: SourceContext, key: FileKey, line: int, measured: Measured | None) -> str:
    """Markdown on the measured time of a line (0-based, as the text is now); empty if it has none."""
    timed = next((timed for timed in lines_with_time(context, key, measured) if timed.line == line), None)
    if measured is None or timed is None:
        return ""
    ran = timed.measured.line
    kernels = measured.kernels.get(key, {}).get(ran, ())
    parts = [f"**Measured** {timed.title}", _table(kernels, key, ran)]
    if len(kernels) > _MOST_KERNELS:
        parts.append(f"and {units.count(len(kernels) - _MOST_KERNELS, 'more kernel')}.")
    reasons = list(_reasons(measured.ended.full or measured.ended.report, key, ran))
    if reasons:
        rows = (f"- {reason}" for reason in reasons[:_MOST_REASONS])
        parts.append("\n".join(["Why it is not fused further:", "", *rows]))
    parts.append(_foot(measured.profile))
    return "\n\n".join(part for part in parts if part)


def _table(kernels: Sequence[MeasuredKernel], key: FileKey, line: int) -> str:
    rows = [_row(kernel, key, line) for kernel in kernels[:_MOST_KERNELS]]
    head = ["| kernel | time | calls | moved | achieved | bound | also of |", "|---|---:|---:|---:|---:|---:|---|"]
    return "\n".join([*head, *rows]) if rows else ""


def _row(kernel: MeasuredKernel, key: FileKey, line: int) -> str:
    bound = bound_text(kernel)
    cells = (
        words.code_span(kernel.name),
        units.duration(kernel.seconds),
        units.significant(kernel.calls),
        "" if kernel.moved_bytes is None else units.size(kernel.moved_bytes),
        _achieved(kernel),
        f"{bound} {kernel.bound_by}".strip(),
        _other_places(kernel.origins, key, line),
    )
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def _achieved(kernel: MeasuredKernel) -> str:
    """``1.2 TB/s`` or ``14 TFLOP/s``: the rate of what bounds the kernel; empty if that is not known."""
    if kernel.seconds <= 0:
        return ""
    if kernel.bound_by == "compute" and kernel.flops is not None:
        return f"{units.flops(kernel.flops / kernel.seconds)}/s"
    return "" if kernel.moved_bytes is None else f"{units.size(kernel.moved_bytes / kernel.seconds)}/s"


def _other_places(origins: Sequence[Origin], key: FileKey, line: int) -> str:
    """All but the line itself: ``lines 17, 20``; of other files how many lines."""
    of_file = by_file(origins).get(key, ())
    here = [str(origin.line) for origin in of_file if origin.line != line]
    more = len(here) - _MOST_LINES
    parts = [f"line{'s' if len(here) > 1 else ''} {', '.join(here[:_MOST_LINES])}"] if here else []
    parts += [f"{more} more"] if more > 0 else []
    elsewhere = len(origins) - len(of_file)
    parts += [f"{units.count(elsewhere, 'line')} of other files"] if elsewhere else []
    return ", ".join(parts)


def _reasons(report: Report, key: FileKey, line: int) -> Iterator[str]:
    """Why kernels of the line were not fused, from the findings of the run that are at it or name it."""
    for finding in report.findings:
        if finding.kind != missed_fusion.KIND.id:
            continue
        places: list[Finding | Related] = [finding, *finding.related]
        if any(place.range.start.line <= line <= place.range.end.line for place in by_file(places).get(key, ())):
            yield words.markdown(finding.message)


def _foot(profile: Profile) -> str:
    measured = f"Average of {units.count(profile.steps, 'step')}."
    bound = f" Bound: {words.markdown(profile.bound_words)}." if profile.peaks else ""
    return f"*{measured}{bound}*"
