"""``irscope pipelines``."""

from __future__ import annotations

import argparse
import json
import sys
import textwrap

from irscope.cli.text import Paint, to_stdout
from irscope.driver.availability import Availability, Status, as_data, availability_of, trials_file
from irscope.pipelines.registry import pipelines
from irscope.vocabulary.visible import printable

_COLOURS = {Status.AVAILABLE: "green", Status.MISSING: "yellow", Status.UNSUPPORTED: "dim", Status.UNTRIED: "yellow"}


def list_pipelines(options: argparse.Namespace) -> int:
    """Tries each pipeline in the interpreter and prints which work."""
    known = list(pipelines().values())
    found = availability_of(known, options.python, trials_file(), again=options.again, on_trial=_say_what_is_tried)
    if options.json:
        print(json.dumps(as_data(found), indent=1))
        return 0
    paint = Paint(sys.stdout)
    to_stdout([line for number, one in enumerate(found) for line in _lines(one, number == 0, paint)])
    return 0


def _say_what_is_tried(name: str) -> None:
    if sys.stderr.isatty():
        print(f"irscope: Trying the pipeline {name}…", file=sys.stderr, flush=True)


def _lines(one: Availability, is_first: bool, paint: Paint) -> list[str]:
    lines = [] if is_first else [""]
    lines.append(f"{paint(one.name, 'bold')}  {_shown(one.status, paint)}  {one.title}")
    wide = paint.columns
    if one.why:
        lines += _wrapped(printable(one.why), wide)
    if one.install:
        lines.append(f"  To install it: {printable(one.install)}")  # one line: it is copied
    for each in one.variants:
        lines.append(f"  {paint(printable(each.name), 'bold')}  {_shown(each.status, paint)}")
        lines += [f"  {line}" for line in _wrapped(printable(each.why), wide)] if each.why else []
    if one.stages:
        lines += [paint(line, "dim") for line in _wrapped("stages: " + ", ".join(one.stages), wide)]
    return lines


def _shown(status: Status, paint: Paint) -> str:
    """All were tried, so what still counts as untried is a trial that did not end."""
    return paint("not known" if status is Status.UNTRIED else status.value, _COLOURS[status])


def _wrapped(text: str, columns: int | None) -> list[str]:
    """Indented; no wider than the terminal, and names are not broken."""
    if columns is None:
        return [f"  {text}"]
    return textwrap.wrap(text, columns, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
