"""The tables of measured time, for `irscope profile`, `irscope open`, `irscope show` and `irscope diff`."""

from __future__ import annotations

import os
import sys

from irscope.cli.step_memory import memory_lines
from irscope.cli.tables import table
from irscope.cli.text import Paint
from irscope.cli.trees import tree_lines
from irscope.measures.tree import chained, folded
from irscope.profiling.changes import ProfileDiff
from irscope.profiling.compared_words import elsewhere_words, program_words, region_words
from irscope.profiling.profile import MeasuredProgram, Profile, bound_text
from irscope.protocol import Origin
from irscope.vocabulary.units import count, duration, percent
from irscope.vocabulary.visible import printable

_MOST_ROWS = 20
"""The most rows of a table."""


def profile_lines(found: Profile, paint: Paint, most: int | None = None, show_all: bool = False) -> list[str]:
    """The tables of a profile: modules, call frames, kernels, and the rest of the time."""
    most = sys.maxsize if show_all else most or _MOST_ROWS
    return [
        *_head(found, paint),
        *tree_lines(folded(found.by_module), "module", paint, most, "of step", found.step_seconds),
        *tree_lines(
            found.by_frame if show_all else chained(found.by_frame), "line", paint, most, "of step", found.step_seconds
        ),
        *(["", printable(found.why_no_lines)] if found.why_no_lines else []),
        *_kernel_table(found, paint, most),
        *_gap_table(found, paint, most),
        *_region_lines(found, most),
        *_cost_lines(found, most),
        *(memory_lines(found.memory, paint, most, show_all) if found.memory is not None else []),
        *_foot(found, paint, most),
    ]


def _head(found: Profile, paint: Paint) -> list[str]:
    step = found.step_seconds or 1.0
    lines = [
        f"{paint('One step', 'bold')} ({count(found.steps, 'step')} measured): {duration(found.step_seconds)}, of which "
        f"kernels {duration(found.device_seconds)} ({percent(found.device_seconds, step)}); "
        f"{percent(found.owned_seconds, step)} of the time is attributed."
    ]
    lines += [_program(one) for one in found.programs]
    if found.programs and found.profiled_seconds > 0:
        lines.append(
            f"  Timed without the profiler; with it a step takes {duration(found.profiled_seconds)}, "
            "and only the shares are from there. A step is the lower quartile of single calls."
        )
    return lines


def _program(one: MeasuredProgram) -> str:
    return f"  {printable(one.function)} ({_base(one.file)}:{one.line}), {printable(program_words(one))}"


def _region_lines(found: Profile, most: int) -> list[str]:
    """The lines about the graphs between breaks; a program of one graph is compared as a whole already."""
    if not found.has_own_regions:
        return []
    lines = ["", f"Between graph breaks: {count(len(found.regions), 'graph')}, each called alone"]
    for one in found.regions[:most]:
        lines.append(f"  {printable(one.function)} ({_base(one.file)}:{one.line}), {printable(region_words(one))}")
        lines += [f"    {printable(elsewhere_words(each))}" for each in one.elsewhere]
    return lines + _more(len(found.regions), most, "graph")


def _kernel_table(found: Profile, paint: Paint, most: int) -> list[str]:
    step = found.step_seconds or 1.0
    rows = [
        [printable(one.name), duration(one.seconds), percent(one.seconds, step), bound_text(one),
         _number(one.calls), ", ".join(_place(each) for each in one.origins)]
        for one in found.kernels[:most]
    ]  # fmt: skip
    head = ["kernel", "time", "of step", "bound", "calls", "lines"]
    lines = ["", *table(head, rows, paint, right=frozenset({1, 2, 3, 4}))] if rows else []
    return lines + _more(len(found.kernels), most, "kernel")


def _gap_table(found: Profile, paint: Paint, most: int) -> list[str]:
    step = found.step_seconds or 1.0
    rows = [
        [one.kind, duration(one.seconds), percent(one.seconds, step), printable(_short(one.where))]
        for one in found.gaps[:most]
    ]
    lines = ["", *table(["beside kernels", "time", "of step", "where"], rows, paint, right=frozenset({1, 2}))]
    return lines + _more(len(found.gaps), most, "row")


def _cost_lines(found: Profile, most: int) -> list[str]:
    """The lines about graph breaks and recompilations."""
    lines = [""] if found.breaks or found.recompiled else []
    lines += [f"Graph break ({_place(Origin(one.file, one.line))}): {one.words}" for one in found.breaks[:most]]
    lines += _more(len(found.breaks), most, "break")
    lines += [
        f"{printable(one.function)} ({_place(Origin(one.file, one.line))}) was {one.words}"
        for one in found.recompiled[:most]
    ]
    return lines + _more(len(found.recompiled), most, "function")


def _foot(found: Profile, paint: Paint, most: int) -> list[str]:
    lines = ["", *map(printable, found.warnings)] if found.warnings else []
    if found.cuda_graphs.recorded or found.cuda_graphs.replayed:
        lines += ["", f"CUDA graphs: {_number(found.cuda_graphs.replayed)} replayed, "
                      f"{_number(found.cuda_graphs.recorded)} recorded in a step"]  # fmt: skip
    lines += [
        f"No CUDA graph ({_place(Origin(one.file, one.line))}): {printable(one.why)}"
        for one in found.cuda_graphs.skipped[:most]
    ]
    if found.peaks:
        lines += ["", paint(f"bound: {printable(found.bound_words)}. A kernel of several lines is divided among them by a model.", "dim")]  # fmt: skip
    return lines


def _more(number: int, most: int, noun: str) -> list[str]:
    return [f"  … and {count(number - most, noun)} more (--all)"] if number > most else []


def _place(origin: Origin) -> str:
    return printable(f"{_base(origin.file)}:{origin.line}")


def _short(where: str) -> str:
    return os.path.basename(where) if where.startswith(os.sep) else where


def _base(path: str) -> str:
    return os.path.basename(path)


def _number(calls: float) -> str:
    return f"{calls:.0f}" if calls == int(calls) else f"{calls:.1f}"


def change_lines(found: ProfileDiff, paint: Paint) -> list[str]:
    """What changed in measured time, for people."""
    before, after = duration(found.step_seconds.before), duration(found.step_seconds.after)
    lines = ["", f"{paint('Measured time of a step', 'bold')}: {before} → {after}: {found.words}"]
    rows = [
        [f"{printable(_base(one.file))}:{one.line}", duration(one.before) if one.before else "–",
         duration(one.after) if one.after else "–", f"{'+' if one.after > one.before else '-'}{duration(abs(one.after - one.before))}"]
        for one in found.lines[:_MOST_ROWS]
    ]  # fmt: skip
    head = ["line", "before", "after", "change"]
    lines += table(head, rows, paint, right=frozenset({1, 2, 3}), whole=frozenset({0})) if rows else []
    return lines + _more(len(found.lines), _MOST_ROWS, "line")
