"""``irscope profile``, and ``irscope open`` of a profiler's trace: measured time on the lines that cost it."""

from __future__ import annotations

import argparse
import os
import sys

from irscope.cli.progress import ProgressLine
from irscope.cli.running import entry_of
from irscope.cli.tables import table
from irscope.cli.text import Paint, print_json, to_stdout
from irscope.driver.driver import RunSpec
from irscope.driver.profiling import NotMeasured, opened, profiled
from irscope.ir.kineto import TraceError
from irscope.profiling.profile import Profile
from irscope.protocol import Origin, to_json
from irscope.provenance.trails import keep_trails
from irscope.store.store import Store
from irscope.system.streams import complain
from irscope.vocabulary.units import count, duration, percent
from irscope.vocabulary.visible import printable

_MOST_ROWS = 15
"""Of each table; JSON has all."""


def profile(options: argparse.Namespace) -> int:
    """Runs the script, measures what it compiled and prints whose time it is."""
    entry, script, model = entry_of(options)
    spec = RunSpec(
        script=script, args=tuple(options.args), python=options.python, cwd=options.cwd, entry=entry, model=model,
        symbolic_trace=False, profile=options.calls,
    )  # fmt: skip
    progress = ProgressLine()
    with Store(options.store) as store:
        try:
            run, _, found = profiled(
                spec, store, on_message=progress.see, stdout=sys.stderr.fileno() if options.json else None
            )
        except NotMeasured as error:
            progress.wipe()
            complain(f"irscope: {printable(str(error))}")
            return 3
        progress.wipe()
        _print(found, options.json)
        keep_trails(store, run)
        store.tidy(run)
    return 0


def open_profile(options: argparse.Namespace) -> int:
    """Prints whose time a trace from elsewhere is."""
    try:
        if options.run is None:
            found = opened(options.trace, None, None)
        else:
            with Store(options.store) as store:
                found = opened(options.trace, store, store.find_run(options.run))
    except TraceError as error:
        complain(f"irscope: {printable(str(error))}")
        return 3
    _print(found, options.json)
    return 0


def _print(found: Profile, as_json: bool) -> None:
    if as_json:
        print_json(to_json(found))
    else:
        to_stdout(profile_lines(found, Paint(sys.stdout)))


def profile_lines(found: Profile, paint: Paint) -> list[str]:
    """The tables of a profile: lines, kernels, and the rest of the time."""
    step = found.step_seconds or 1.0
    lines = [
        f"{paint('One step', 'bold')} ({count(found.steps, 'step')} measured): {duration(found.step_seconds)}, of which "
        f"kernels {duration(found.device_seconds)} ({percent(found.device_seconds, step)}); "
        f"{percent(found.owned_seconds, step)} of the time has an owner."
    ]
    for one in found.programs:
        place = f"{printable(one.function)} ({_base(one.file)}:{one.line})"
        if one.why_not:
            lines.append(f"  {place} was not measured: {printable(one.why_not)}")
        elif one.seconds is not None and one.plain_seconds is not None:
            with_ = "forward and backward" if one.backward else "forward"
            lines.append(
                f"  {place}, {with_}: {duration(one.seconds)}; {duration(one.plain_seconds)} without the profiler"
            )
    rows = [
        [f"{printable(_base(one.file))}:{one.line}", duration(one.seconds), percent(one.seconds, step),
         _bound(one.bound_seconds), _number(one.calls), ", ".join(map(printable, one.kernels))]
        for one in found.lines[:_MOST_ROWS]
    ]  # fmt: skip
    head = ["line", "time", "of step", "bound", "calls", "kernels"]
    lines += ["", *table(head, rows, paint, right=frozenset({1, 2, 3, 4}), whole=frozenset({0}))] if rows else []
    lines += _more(len(found.lines), "line")
    rows = [
        [printable(one.name), duration(one.seconds), percent(one.seconds, step), _bound(one.bound_seconds),
         _number(one.calls), ", ".join(_place(each) for each in one.origins)]
        for one in found.kernels[:_MOST_ROWS]
    ]  # fmt: skip
    head = ["kernel", "time", "of step", "bound", "calls", "lines"]
    lines += ["", *table(head, rows, paint, right=frozenset({1, 2, 3, 4}))] if rows else []
    lines += _more(len(found.kernels), "kernel")
    rows = [
        [one.kind, duration(one.seconds), percent(one.seconds, step), printable(_short(one.where))]
        for one in found.gaps[:_MOST_ROWS]
    ]
    lines += ["", *table(["beside kernels", "time", "of step", "where"], rows, paint, right=frozenset({1, 2}))]
    lines += _more(len(found.gaps), "row")
    if found.cuda_graphs.recorded or found.cuda_graphs.replayed:
        lines += ["", f"CUDA graphs: {_number(found.cuda_graphs.replayed)} replayed, "
                      f"{_number(found.cuda_graphs.recorded)} recorded in a step"]  # fmt: skip
    if found.peaks:
        lines += ["", paint(f"bound: the least time on {printable(found.peaks)}. A kernel of several lines counts in each.", "dim")]  # fmt: skip
    return lines + ([f"irscope show {found.run}"] if found.run else [])


def _more(number: int, noun: str) -> list[str]:
    return [f"  … and {count(number - _MOST_ROWS, noun)} more (--json has all)"] if number > _MOST_ROWS else []


def _place(origin: Origin) -> str:
    return printable(f"{_base(origin.file)}:{origin.line}")


def _short(where: str) -> str:
    return os.path.basename(where) if where.startswith(os.sep) else where


def _base(path: str) -> str:
    return os.path.basename(path)


def _bound(seconds: float | None) -> str:
    return "" if seconds is None else duration(seconds)


def _number(calls: float) -> str:
    return f"{calls:.0f}" if calls == int(calls) else f"{calls:.1f}"
