"""``irscope graph``: a graph as a picture, or as DOT."""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys

from irscope.cli.diffing import find_stage
from irscope.cli.graph_arguments import STANDARD_OUTPUT, format_of
from irscope.cli.text import print_json, short_path, to_stdout
from irscope.pictures.dot import to_dot, told
from irscope.pictures.folding import Picture, fold
from irscope.pictures.graph import PictureGraph, near, read_graph, read_schedule
from irscope.pictures.outline import to_lines
from irscope.pictures.rendering import RenderingError, render
from irscope.pipelines.registry import role_of, stage_kind
from irscope.protocol import Compile, Report, StageRef, to_json
from irscope.store.store import Store
from irscope.system.streams import complain
from irscope.usercode.writing import write_file
from irscope.vocabulary.stages import Role
from irscope.vocabulary.suggestions import listed
from irscope.vocabulary.units import count, duration
from irscope.vocabulary.visible import printable


@dataclasses.dataclass(frozen=True)
class Drawing:
    """What a picture shows (docs/json.md).

    Args:
        file: None: it went to standard output, or ``dot`` has it.
        engine: The layout engine of Graphviz; empty for DOT.
        boxes: What is drawn: operations, inputs and folded modules.
        folded: Modules that are drawn as one box.
        dot: Where no file was named.
        text: With ``--text``, in place of ``dot``.
    """

    run: str
    stage: str
    file: str | None
    format: str
    engine: str
    nodes: int
    boxes: int
    folded: int
    left_out: int
    depth: int
    dot: str | None
    text: str | None


def graph(options: argparse.Namespace) -> int:
    """Writes the picture.  Raises LookupError if the run has no such graph, or the graph no such node."""
    if options.text and options.output != STANDARD_OUTPUT:
        raise LookupError("--text is for standard output: leave --output out.")
    with Store(options.store) as store:
        report = store.report(store.find_run(options.run))
        report = report.of_target(options.target) if options.target else report
        compile, stage = _graph_stage(report, options)
        try:
            read = (read_graph if stage_kind(stage.name).is_graph else read_schedule)(store, report.run, compile, stage)
        except ValueError as error:
            raise LookupError(f"{stage.id} cannot be drawn: {error}.") from error
    if options.node is not None:
        read = near(read, options.node, options.around)
    picture = fold(read, options.depth, options.max_nodes)
    if options.text:
        _print_text(report, stage, read, picture, options)
        return 0
    file = f" · {short_path(compile.file)}:{compile.line}" if compile.file else ""
    dot = to_dot(read, picture, f"{stage_kind(stage.name).title} {stage.id} of {compile.function}{file}", options.theme)
    format = format_of(options.output) or ""
    engine = ""
    if format == "dot":
        if options.output != STANDARD_OUTPUT:
            write_file(options.output, dot.encode("utf-8", "replace"))
        elif not options.json:
            sys.stdout.write(dot)
            return 0
    else:
        try:
            data, engine = render(dot, format, options.timeout)
        except RenderingError as error:
            complain(f"irscope: {error}")
            return 3
        write_file(options.output, data)
    _tell(report, stage, picture, engine, dot, options)
    return 0


def _print_text(
    report: Report, stage: StageRef, read: PictureGraph, picture: Picture, options: argparse.Namespace
) -> None:
    lines = to_lines(read, picture)
    if options.json:
        print_json(to_json(_drawing(report, stage, picture, "", text="\n".join(lines))))
        return
    to_stdout([printable(f"{stage.id}: {told(picture)}"), *map(printable, lines)])


def _graph_stage(report: Report, options: argparse.Namespace) -> tuple[Compile, StageRef]:
    stage = find_stage(report, options.stage, options.compile)
    if not _is_drawn(stage):
        graphs = [one.id for compile in report.with_predictions for one in compile.stages if _is_whole(one)]
        raise LookupError(f"{stage.id} is not a graph. The graphs of run {report.run} are: {listed(graphs)}.")
    return next(compile for compile in report.with_predictions if stage in compile.stages), stage


def _is_drawn(stage: StageRef) -> bool:
    return stage_kind(stage.name).is_graph or role_of(stage.name) is Role.SCHEDULE


def _is_whole(stage: StageRef) -> bool:
    return _is_drawn(stage) and not stage.passed


def _tell(
    report: Report, stage: StageRef, picture: Picture, engine: str, dot: str, options: argparse.Namespace
) -> None:
    to_file = options.output != STANDARD_OUTPUT
    if options.json:
        file = os.path.abspath(options.output) if to_file else None
        format = format_of(options.output) or ""
        drawing = _drawing(report, stage, picture, format, file=file, engine=engine, dot=None if to_file else dot)
        print_json(to_json(drawing))
    else:
        print(printable(f"{short_path(options.output)}: {stage.id}, {told(picture)}"))
    if engine == "sfdp":
        complain(
            f"irscope: Graphviz's `dot` was not ready after {duration(options.timeout)}, so `sfdp` laid the graph out: "
            f"without frames and layers. It has {count(len(list(picture.root.boxes())), 'box', 'boxes')}: --depth and --max-nodes draw fewer."
        )


def _drawing(
    report: Report, stage: StageRef, picture: Picture, format: str, *,
    file: str | None = None, engine: str = "", dot: str | None = None, text: str | None = None,
) -> Drawing:  # fmt: skip
    boxes = list(picture.root.boxes())
    folded = sum(box.is_folded for box in boxes)
    return Drawing(
        report.run, stage.id, file, format or "text", engine, picture.nodes, len(boxes), folded, picture.left_out,
        picture.depth, dot, text,
    )  # fmt: skip
