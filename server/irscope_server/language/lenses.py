"""The line over a compiled function: ``2 graphs · 1 break · 3 recompiles · 5 kernels · 1.8 s``; over a stage, its age."""

from __future__ import annotations

from collections.abc import Sequence

from irscope.findings.kinds import graph_break, recompilation
from irscope.pipelines.registry import stage_kind
from irscope.protocol import Compile
from irscope.vocabulary import units
from lsprotocol import types

from irscope_server.base import words
from irscope_server.base.context import ReadContext
from irscope_server.base.functions import Outline, outline_of
from irscope_server.base.not_compiled import HEAD
from irscope_server.base.run_age import age_of
from irscope_server.base.stage_uris import NoDocument, parts_of
from irscope_server.base.texts import file_key, to_units
from irscope_server.language.context import SourceContext
from irscope_server.language.views import PlacedFunction
from irscope_server.running.results import Ended, frame_of, is_recompile
from irscope_server.running.runs import Run

_GRAPH = ("graph", "graphs")
COMMAND = "irscope.showRun"
CHOOSE_COMMAND = "irscope.chooseEntry"
PLACE_COMMAND = "irscope.showPlace"
"""Of the client; one that does not know them loses nothing but the click."""


def lenses_of(context: SourceContext, path: str, uri: str) -> list[types.CodeLens]:
    """The lenses of a document.

    They are above a function's first decorator, where a reader looks for what is said about the function.
    While the document's script runs they say so, above every function that was compiled before or that the text
    itself hands to ``torch.compile``.  What an edit may have made untrue says so, too.
    """
    lines = context.texts.lines(path)
    functions = context.views.functions(path)
    run = context.runs.current(context.key_of(path))
    outline = outline_of("\n".join(lines))
    if run is not None:
        commands = _running_commands(run, functions, outline, uri)
    else:
        commands = _function_commands(context, functions, uri)
    if not commands and _needs_entry(context, path):
        choose = types.Command("choose the script that runs this module", CHOOSE_COMMAND, arguments=[{"uri": uri}])
        commands = [(line, choose) for line in _marked_lines(outline, or_call=True)]
    lenses = []
    for line, command in commands:
        text = lines[line] if line < len(lines) else ""
        start = len(text) - len(text.lstrip())
        end = to_units(text, len(text), context.encoding)
        lenses.append(types.CodeLens(types.Range(types.Position(line, start), types.Position(line, end)), command))
    return lenses


def _running_commands(
    run: Run, functions: Sequence[PlacedFunction], outline: Outline | None, uri: str
) -> list[tuple[int, types.Command]]:
    compiled = {function.first_line: f"{lens_title(function)} · running…" for function in functions}
    titles = dict.fromkeys(_marked_lines(outline, or_call=not compiled), "running…") | compiled
    return [(line, _show_run(title, run.live.run, uri, line)) for line, title in sorted(titles.items())]


def _function_commands(
    context: SourceContext, functions: Sequence[PlacedFunction], uri: str
) -> list[tuple[int, types.Command]]:
    breaks = {function.first_line: why for function in functions if (why := function.not_compiled) and why.file}
    commands = []
    for function in functions:
        line, run = function.first_line, function.ended.run
        title = lens_title(function) + (" · before your edit" if function.stale else "")
        if (why := breaks.get(line)) is not None:
            place = {"uri": context.uri_of(why.file), "line": why.line}
            commands.append((line, types.Command(title, PLACE_COMMAND, arguments=[place])))
        elif run:
            commands.append((line, _show_run(title, run, uri, line)))
        else:
            commands.append((line, types.Command(title, CHOOSE_COMMAND, arguments=[{"uri": uri}])))
    return commands


def _show_run(title: str, run: str, uri: str, line: int) -> types.Command:
    return types.Command(title, COMMAND, arguments=[{"run": run, "uri": uri, "line": line}])


def _marked_lines(outline: Outline | None, *, or_call: bool) -> list[int]:
    """Where functions begin that are marked to be compiled; without any perhaps the first call of `torch.compile`."""
    if outline is None:
        return []
    marked = {function.first_line - 1 for function in outline.marked()}
    return sorted(marked) or [line - 1 for line in outline.compile_calls[:1] if or_call]


async def stage_lenses(context: ReadContext, uri: str) -> list[types.CodeLens] | None:
    """Over the text of a stage: that a newer run of its script is kept; None for what is not the text of a stage."""
    try:
        run, _ = parts_of(uri)
    except NoDocument:
        return None
    age = await age_of(context.archive, run)
    if not age.text:
        return []
    start = types.Position(0, 0)
    command = types.Command(age.text, COMMAND, arguments=[{"run": age.newest}])
    return [types.CodeLens(types.Range(start, start), command)]


def _needs_entry(context: SourceContext, path: str) -> bool:
    """Whether no known entry runs a library module."""
    key = file_key(path)
    return key in context.planner.plans and context.planner.plans[key] is None


def lens_title(function: PlacedFunction) -> str:
    """Counts of a compiled function; what is zero is left out, but for the graphs and for what was not zero before.

    What the run before counted is behind where it differs: ``1 break (was 3)``.  Of a function that was not compiled
    it says why.
    """
    compiles = function.compiles
    if (why := function.not_compiled) is not None:
        return f"{HEAD}: {why.words}"
    now = _counts(function.ended, compiles)
    before = now
    if function.before is not None and function.ended_before is not None:
        before = _counts(function.ended_before, function.before)
    parts = []
    for number, earlier, names in zip(
        now, before, (_GRAPH, graph_break.KIND.short, recompilation.KIND.short), strict=True
    ):
        if number or number != earlier or names is _GRAPH:
            was = f" (was {earlier})" if number != earlier else ""
            parts.append(units.count(number, *names) + was)
    generated = sum(kernel.is_generated for kernel in function.kernels)
    parts += [units.kernels(generated)] if generated else []
    time = words.known_duration(sum(compile.seconds for compile in compiles))
    parts += [time] if time else []
    title = " · ".join(parts)
    return f"compiled in other files: {title}" if function.elsewhere else title


def _counts(ended: Ended, compiles: tuple[Compile, ...]) -> tuple[int, int, int]:
    """Graphs, graph breaks and recompilations."""
    ids = {compile.id for compile in compiles}
    breaks = sum(1 for f in ended.report.findings if f.kind == graph_break.KIND.id and not ids.isdisjoint(f.compiles))
    return graph_count(compiles), breaks, sum(1 for compile in compiles if is_recompile(compile))


def graph_count(compiles: tuple[Compile, ...]) -> int:
    """Distinct frames that gave a graph: a recompilation of a frame is not a further graph, a resume function is."""
    return len(
        {
            frame_of(compile)
            for compile in compiles
            if compile.graph_ops > 0 or any(stage_kind(stage.name).is_captured for stage in compile.stages)
        }
    )
