"""The arguments of ``irscope graph``."""

from __future__ import annotations

import argparse
from pathlib import Path

from irscope.cli.numbers import whole_number
from irscope.cli.shared_arguments import add_json_and_store, add_run, add_target
from irscope.vocabulary.graph_looks import MOST_NODES, THEMES

DESCRIPTION = """\
Draws a graph: modules as frames, operations in the colours of the graph panel.  It is folded by module until it has no
more boxes than a picture can show; the picture says what is folded and left out.

  irscope graph --stage 0/0/forward-graph -o forward.svg      also .pdf and .png
  irscope graph --stage 0/0/joint-graph --depth 1 -o joint.png
  irscope graph --stage 0/0/forward-graph > forward.dot
  irscope graph --stage 0/0/forward-graph --text --node relu_1    as text: the nodes around one

Pictures need the program `dot` of Graphviz; DOT and text need nothing."""

PICTURES = ("svg", "pdf", "png")
"""Formats that Graphviz makes, as its option -T names them."""
STANDARD_OUTPUT = "-"
_DOT = ("dot", "gv")
_MOST = 10**6 - 1


def add_to(graph: argparse.ArgumentParser) -> None:
    """Adds all of them to a parser."""
    graph.description = DESCRIPTION
    add_json_and_store(graph)
    add_run(graph)
    graph.add_argument(
        "--stage", metavar="NAME", required=True, help="a graph by name (forward-graph) or by id (0/0/forward-graph)"
    )
    graph.add_argument("--compile", metavar="ID", help="the compile of a stage that is named without it")
    add_target(graph)
    graph.add_argument(
        "-o", "--output", metavar="FILE", type=_picture_file, default=STANDARD_OUTPUT,
        help="a file that ends in .svg, .pdf, .png or .dot; - is DOT on standard output (default: %(default)s)",
    )  # fmt: skip
    graph.add_argument(
        "--text", action="store_true", help="print text instead of DOT: a node a line, with what it takes"
    )
    graph.add_argument("--node", metavar="NAME", help="draw only the nodes around this one")
    graph.add_argument(
        "--around", metavar="N", type=whole_number("edges", 0, _MOST), default=2,
        help="with --node: those within N edges of it (default: %(default)s)",
    )  # fmt: skip
    graph.add_argument(
        "--depth", metavar="N", type=whole_number("levels", 0, _MOST),
        help="draw frames for N levels of modules, and fold deeper ones (default: as many as --max-nodes allows)",
    )  # fmt: skip
    graph.add_argument(
        "--max-nodes", metavar="N", type=whole_number("nodes", 1, _MOST), default=MOST_NODES,
        help="draw at most N operations, inputs and folded modules (default: %(default)s)",
    )  # fmt: skip
    graph.add_argument(
        "--theme", choices=THEMES, default=THEMES[0], help="colours for this background (default: %(default)s)"
    )
    graph.add_argument(
        "--timeout", metavar="SECONDS", type=whole_number("seconds", 1, _MOST), default=30,
        help="stop Graphviz after this time: first `dot`, then the faster `sfdp` (default: %(default)s)",
    )  # fmt: skip
    graph.set_defaults(do=("graphing", "graph"))


def format_of(name: str) -> str | None:
    """``svg``, ``pdf``, ``png`` or ``dot``, by the end of the file's name; None for any other."""
    suffix = Path(name).suffix[1:].lower()
    return "dot" if suffix in _DOT or name == STANDARD_OUTPUT else suffix if suffix in PICTURES else None


def _picture_file(name: str) -> str:
    if format_of(name) is None:
        names = ", ".join(f".{one}" for one in (*PICTURES, *_DOT))
        raise argparse.ArgumentTypeError(f"the name of the file has to end in one of {names}: {name!r}")
    return name
