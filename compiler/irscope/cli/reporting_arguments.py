"""The arguments of ``irscope report``."""

from __future__ import annotations

import argparse

from irscope.cli.shared_arguments import add_json_and_store, add_run, add_target
from irscope.reporting.redaction import REDACTIONS
from irscope.vocabulary.suggestions import listed

DESCRIPTION = """\
Writes a run as one page of HTML, to attach to an issue: findings, compiles, stages, graphs and the environment.  The page has no
script, and loads nothing.  Graphs are drawn if the program `dot` of Graphviz is installed.

  irscope report -o report.html
  irscope report 20261125-071919 -o report.html --redact paths,source

With --redact paths, folders and the arguments of the script are left out; with --redact source, lines of your code: excerpts,
quotations, comments in graphs, bytecode and traces.  Names of functions and variables stay.  Read the page before you share it."""


def add_to(report: argparse.ArgumentParser) -> None:
    """Adds all of them to a parser."""
    report.description = DESCRIPTION
    add_json_and_store(report)
    add_run(report)
    add_target(report)
    report.add_argument("-o", "--output", metavar="FILE", required=True, help="the file to write")
    report.add_argument(
        "--redact", metavar="PARTS", type=_parts, default=(), help="leave out paths, source, or both: paths,source"
    )
    report.add_argument(
        "--no-pictures", dest="pictures", action="store_false", help="draw no graphs; their texts are there"
    )
    report.set_defaults(do=("reporting", "report"))


def _parts(text: str) -> tuple[str, ...]:
    parts = tuple(part.strip() for part in text.split(","))
    if not set(parts) <= set(REDACTIONS):
        raise argparse.ArgumentTypeError(f"Invalid choice: {text!r} (choose from {listed(REDACTIONS)})")
    return parts
