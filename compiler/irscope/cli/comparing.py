"""``irscope compare``: one script through several pipelines, side by side."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence

from irscope.cli.running import entry_of
from irscope.cli.tables import table
from irscope.cli.text import Paint, to_stdout
from irscope.comparing.pipelines import Figure, Left, PipelineFigures, Timing
from irscope.driver.comparison import compared
from irscope.driver.driver import RunSpec
from irscope.pipelines.registry import pipeline_named
from irscope.protocol import to_json
from irscope.vocabulary.units import count, duration, significant, size
from irscope.vocabulary.visible import printable

_MOST_NOTES = 8
"""Places that are listed of each pipeline; JSON has all."""


def compare(options: argparse.Namespace) -> int:
    """Runs the script through each pipeline and prints what they made of it.  Raises LookupError for an unknown one."""
    entry, script, model = entry_of(options)
    names = list(
        dict.fromkeys(pipeline_named(name.strip()).name for name in options.pipelines.split(",") if name.strip())
    )
    if not names:
        raise LookupError("--pipelines names no pipeline. Write names with commas: --pipelines inductor,torchscript.")
    specs = [
        RunSpec(
            script=script, args=tuple(options.args), python=options.python, cwd=options.cwd, entry=entry,
            pipeline=name, model=model, symbolic_trace=False,
        )
        for name in names
    ]  # fmt: skip
    on_output = _echo if options.output else _drop
    found = compared(specs, options.store, options.rounds, on_step=_say, on_output=on_output)
    _say("")
    if options.json:
        print(json.dumps(to_json(found), indent=1))
    else:
        to_stdout(comparison_lines(found.pipelines, Paint(sys.stdout)))
    return 0 if any(not one.problem for one in found.pipelines) else 1


_TITLES = (
    "operators", "  in the last stage", "  fused", "kernels", "library calls", "bytes moved", "compile time",
    "call (median)", "  quartiles", "  eager", "difference", "  relative",
)  # fmt: skip
"""Heads of the rows."""


def comparison_lines(figures: Sequence[PipelineFigures], paint: Paint) -> list[str]:
    """A table with a column for each pipeline, and below it what is missing and why."""
    notes = _Notes()
    names = [pipeline.pipeline for pipeline in figures]
    cells = [notes.cells(pipeline) for pipeline in figures]
    rows = [[title, *row] for title, *row in zip(_TITLES, *cells, strict=True)]
    lines = table(["", *names], rows, paint, right=frozenset(range(1, len(names) + 1)), whole=frozenset({0}))
    for pipeline in figures:
        lines += ["", f"{paint(pipeline.pipeline, 'bold')}  {printable(pipeline.title)}"]
        lines += [f"  irscope show {pipeline.run}   ({count(len(pipeline.stages), 'stage')})"] if pipeline.run else []
        lines += [f"  failed: {printable(pipeline.problem)}"] if pipeline.problem else []
        lines += [f"  {printable(text)}" for text in notes.of(pipeline.pipeline, told=pipeline.problem)]
        lines += _places("not in the last stage", pipeline.gone)
        lines += _places("left behind", pipeline.left)
    return lines


def _places(title: str, found: Sequence[Left]) -> list[str]:
    lines = []
    for one in found[:_MOST_NOTES]:
        place = f" ({os.path.basename(one.file)}:{one.line})" if one.file else ""
        why = f": {one.why}" if one.why else ""
        lines.append("  " + printable(f"{title}: {one.what}{place}{why}"))
    more = len(found) - _MOST_NOTES
    return [*lines, f"  … and {more} more {title} (--json has all)"] if more > 0 else lines


class _Notes:
    """Cells of the table, and the reasons of those that are empty."""

    def __init__(self) -> None:
        self._about: dict[str, list[str]] = {}
        self._missing: dict[tuple[str, str], dict[str, None]] = {}
        """By pipeline and reason: the names of what is missing."""

    def of(self, pipeline: str, told: str) -> list[str]:
        """The notes of a pipeline, one for each reason; without what is missing for the reason that is `told` already."""
        missing = [
            f"no {', '.join(names)}: {why}"
            for (one, why), names in self._missing.items()
            if one == pipeline and why != told
        ]
        return [*missing, *self._about.get(pipeline, ())]

    def cells(self, figures: PipelineFigures) -> list[str]:
        """A column, without its head."""
        pipeline = figures.pipeline
        return [
            self.number(pipeline, "operators", figures.operators),
            self.number(pipeline, "operators", figures.taken),
            self.number(pipeline, "operators", figures.fused),
            self.number(pipeline, "kernels", figures.kernels),
            self.number(pipeline, "library calls", figures.library_calls),
            self.bytes(pipeline, "bytes moved", figures.moved_bytes),
            self.seconds(pipeline, "compile time", figures.compile_seconds),
            self.timing(pipeline, "call", figures.call),
            _spread(figures.call),
            self.timing(pipeline, "eager", figures.eager),
            self.share(pipeline, "difference", figures.difference),
            self.share(pipeline, "difference", figures.relative_difference),
        ]

    def number(self, pipeline: str, name: str, figure: Figure) -> str:
        return self._cell(pipeline, name, figure, lambda value: f"{value:.0f}")

    def bytes(self, pipeline: str, name: str, figure: Figure) -> str:
        if figure.value is not None and figure.why:
            self._about.setdefault(pipeline, []).append(f"{name}: by {figure.why}")
        return self._cell(pipeline, name, figure, lambda value: size(int(value)))

    def seconds(self, pipeline: str, name: str, figure: Figure) -> str:
        return self._cell(pipeline, name, figure, duration)

    def share(self, pipeline: str, name: str, figure: Figure) -> str:
        return self._cell(pipeline, name, figure, lambda value: f"{value:.2g}")

    def timing(self, pipeline: str, name: str, timing: Timing) -> str:
        return self._cell(pipeline, name, Figure(timing.median, timing.why), _time)

    def _cell(self, pipeline: str, name: str, figure: Figure, shown: Callable[[float], str]) -> str:
        if figure.value is not None:
            return shown(figure.value)
        self._missing.setdefault((pipeline, figure.why), {})[name] = None
        return "–"


def _spread(timing: Timing) -> str:
    return "" if timing.low is None or timing.high is None else f"{_time(timing.low)} – {_time(timing.high)}"


def _time(seconds: float) -> str:
    """Microseconds, where `duration` has milliseconds only."""
    return f"{significant(seconds * 1e6)} µs" if seconds < 1e-3 else f"{significant(seconds * 1e3)} ms"


def _say(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{f'irscope: {text}…' if text else ''}", end="", file=sys.stderr, flush=True)


def _echo(stream: str, text: str) -> None:
    sys.stderr.write(text)


def _drop(stream: str, text: str) -> None:
    """What the script prints is the same for each pipeline, and not asked for."""
