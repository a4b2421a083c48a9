"""What is said of a line's measured time when the pointer rests on it: its kernels, what they reach, and why not more."""

from __future__ import annotations

from collections.abc import Iterator

from irscope.findings.kinds import missed_fusion
from irscope.profiling.profile import MeasuredKernel, Profile
from irscope.protocol import Origin, Report
from irscope.vocabulary import units

from irscope_server.base import words
from irscope_server.base.texts import file_key
from irscope_server.language.context import SourceContext
from irscope_server.language.measured_lines import lines_with_time
from irscope_server.running.measured import Measured

_MOST_KERNELS = 8
_MOST_REASONS = 3
_MOST_LINES = 6


def time_text(context: SourceContext, path: str, line: int, measured: Measured | None) -> str:
    """Markdown on the measured time of a line (0-based, as the text is now); empty if it has none."""
    one = next((each for each in lines_with_time(context, path, measured) if each.line == line), None)
    if measured is None or one is None:
        return ""
    key, profile = file_key(path), measured.profile
    kernels = measured.kernels.get((key, one.measured.line), ())
    parts = [f"**Measured** {one.title}", _table(kernels, key, one.measured.line)]
    if len(kernels) > _MOST_KERNELS:
        parts.append(f"and {units.count(len(kernels) - _MOST_KERNELS, 'more kernel')}.")
    reasons = list(_reasons(measured.ended.full or measured.ended.report, key, one.measured.line))
    if reasons:
        parts.append(
            "\n".join(["Why it is not fused further:", "", *(f"- {each}" for each in reasons[:_MOST_REASONS])])
        )
    parts.append(_foot(profile))
    return "\n\n".join(part for part in parts if part)


def _table(kernels: tuple[MeasuredKernel, ...], key: str, line: int) -> str:
    rows = [_row(kernel, key, line) for kernel in kernels[:_MOST_KERNELS]]
    head = ["| kernel | time | calls | moved | achieved | bound | also of |", "|---|---:|---:|---:|---:|---:|---|"]
    return "\n".join([*head, *rows]) if rows else ""


def _row(kernel: MeasuredKernel, key: str, line: int) -> str:
    others = [origin for origin in kernel.origins if (file_key(origin.file), origin.line) != (key, line)]
    bound = "" if kernel.bound_seconds is None else units.duration(kernel.bound_seconds)
    cells = (
        words.code_span(kernel.name),
        units.duration(kernel.seconds),
        units.significant(kernel.calls),
        "" if kernel.moved_bytes is None else units.size(kernel.moved_bytes),
        _achieved(kernel),
        f"{bound} {kernel.bound_by}".strip(),
        _places(others, key),
    )
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def _achieved(kernel: MeasuredKernel) -> str:
    """``1.2 TB/s`` or ``14 TFLOP/s``: the rate of what bounds the kernel; empty if that is not known."""
    if kernel.seconds <= 0:
        return ""
    if kernel.bound_by == "compute" and kernel.flops is not None:
        return f"{units.flops(kernel.flops / kernel.seconds)}/s"
    return "" if kernel.moved_bytes is None else f"{units.size(kernel.moved_bytes / kernel.seconds)}/s"


def _places(origins: list[Origin], key: str) -> str:
    """``lines 17, 20``; of other files how many lines."""
    here = [str(origin.line) for origin in origins if file_key(origin.file) == key]
    more = len(here) - _MOST_LINES
    parts = [f"line{'s' if len(here) > 1 else ''} {', '.join(here[:_MOST_LINES])}"] if here else []
    parts += [f"{more} more"] if more > 0 else []
    elsewhere = len(origins) - len(here)
    parts += [f"{units.count(elsewhere, 'line')} of other files"] if elsewhere else []
    return ", ".join(parts)


def _reasons(report: Report, key: str, line: int) -> Iterator[str]:
    """Why kernels of the line were not fused, from the findings of the run that are at it or name it."""
    for one in report.findings:
        if one.kind != missed_fusion.KIND.id:
            continue
        places = [(one.file, one.range), *((each.file, each.range) for each in one.related)]
        if any(file_key(file) == key and where.start.line <= line <= where.end.line for file, where in places):
            yield words.markdown(one.message)


def _foot(profile: Profile) -> str:
    measured = f"Average of {units.count(profile.steps, 'step')}."
    bound = f" Bound: the least time on {words.markdown(profile.peaks)}." if profile.peaks else ""
    return f"*{measured}{bound}*"
