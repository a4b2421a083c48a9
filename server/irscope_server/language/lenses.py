"""The line over a compiled function: ``2 graphs · 1 break · 3 recompiles · 5 kernels · 1.8 s``; over the call of
``torch.compile`` the same of a library's model, with its name; over a stage, its age."""

from __future__ import annotations

from collections.abc import Sequence

from irscope.findings.kinds import graph_break, recompilation
from irscope.findings.standing import label, standing_of
from irscope.measures.compiled import has_graph
from irscope.protocol import Compile
from irscope.vocabulary import units
from lsprotocol import types

from irscope_server.base import words
from irscope_server.base.context import Document, ReadContext
from irscope_server.base.functions import Outline, outline_of
from irscope_server.base.not_compiled import HEAD, NotCompiled
from irscope_server.base.run_age import age_of
from irscope_server.base.stage_uris import NoDocument, parts_of
from irscope_server.base.texts import FileKey, to_units
from irscope_server.language.context import SourceContext
from irscope_server.language.views import PlacedFunction
from irscope_server.running.results import Ended, frame_of, is_recompile

_GRAPH = ("graph", "graphs")
COMMAND = "irscope.showRun"
CHOOSE_COMMAND = "irscope.chooseEntry"
PLACE_COMMAND = "irscope.showPlace"
"""A command of the client; one that does not know it loses nothing but the click."""


def lenses_of(context: SourceContext, document: Document) -> list[types.CodeLens]:
    """The lenses of a document.

    They are above a function's first decorator, where a reader looks for what is said about the function.
    While the document's script runs they say so, above every function that was compiled before or that the text
    itself hands to ``torch.compile``.  What an edit may have made untrue says so, too.
    """
    lines = context.texts.lines(document.key)
    functions = context.views.functions(document.key)
    run = context.runs.current(context.key_of(document.path))
    outline = outline_of("\n".join(lines))
    titles: list[tuple[int, str, str]]
    breaks: dict[int, NotCompiled] = {}
    if run is not None:
        titles = [(line, title, run.live.run) for line, title in sorted(_running_titles(functions, outline).items())]
    else:
        titles = [(function.first_line, _ended_title(function), function.ended.run) for function in functions]
        breaks = {
            function.first_line: function.not_compiled
            for function in functions
            if function.not_compiled is not None and function.not_compiled.file
        }
    if not titles and outline and _needs_entry(context, document.key):
        places = _marked(outline) or _first_call(outline)
        titles = [(line, "choose the script that runs this module", "") for line in sorted(places)]
    lenses = []
    for line, title, name in titles:
        if (why := breaks.get(line)) is not None:
            command = types.Command(
                title, PLACE_COMMAND, arguments=[{"uri": context.uri_of(why.file), "line": why.line}]
            )
        elif name or run is not None:
            command = types.Command(title, COMMAND, arguments=[{"run": name, "uri": document.uri, "line": line}])
        else:
            command = types.Command(title, CHOOSE_COMMAND, arguments=[{"uri": document.uri}])
        lenses.append(types.CodeLens(_range_of(lines, line, context.encoding), command))
    return lenses


def _range_of(lines: Sequence[str], line: int, encoding: str) -> types.Range:
    text = lines[line] if line < len(lines) else ""
    start = types.Position(line, len(text) - len(text.lstrip()))
    return types.Range(start, types.Position(line, to_units(text, len(text), encoding)))


def _running_titles(functions: Sequence[PlacedFunction], outline: Outline | None) -> dict[int, str]:
    """Titles by line while the script runs."""
    titles = {function.first_line: words.of_lens(_parts(function), "running…") for function in functions}
    places = _marked(outline) if outline else set()
    if not titles and not places and outline:
        places = _first_call(outline)
    return {**dict.fromkeys(places, "running…"), **titles}


def _ended_title(function: PlacedFunction) -> str:
    return words.of_lens(_parts(function), *(["before your edit"] if function.stale else []))


def _marked(outline: Outline) -> set[int]:
    """Lines above the functions that the text itself marks to be compiled."""
    return {function.first_line - 1 for function in outline.marked()}


def _first_call(outline: Outline) -> set[int]:
    """The line of the first call that compiles something, if there is one."""
    return {line - 1 for line in outline.compile_calls[:1]}


async def stage_lenses(context: ReadContext, uri: str) -> list[types.CodeLens] | None:
    """Over the text of a stage: that a newer run of its script is kept; None if it is not the text of a stage."""
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


def _needs_entry(context: SourceContext, key: FileKey) -> bool:
    """Whether no known entry runs a library module."""
    return key in context.planner.plans and context.planner.plans[key] is None


def lens_title(function: PlacedFunction) -> str:
    """What a lens says of a compiled function, whole: the hover shows it."""
    return " · ".join(_parts(function))


def _parts(function: PlacedFunction) -> list[str]:
    """Counts of a compiled function; what is zero is left out, but for the graphs and for what was not zero before.

    What the run before counted is behind where it differs: ``1 break (was 3)``.  Of a function that was not compiled
    they say why, and of compiled code in other files first which it is and how that went.
    """
    compiles = function.compiles
    if (why := function.not_compiled) is not None:
        return [f"{HEAD}: {why.words}"]
    now = _counts(function.ended, compiles)
    before = now
    if function.before is not None and function.ended_before is not None:
        before = _counts(function.ended_before, function.before)
    parts = [function.title, label(standing_of(function.ended.report, compiles))] if function.elsewhere else []
    for number, earlier, names in zip(
        now, before, (_GRAPH, graph_break.KIND.short, recompilation.KIND.short), strict=True
    ):
        if number or number != earlier or names is _GRAPH:
            was = f" (was {earlier})" if number != earlier else ""
            parts.append(units.count(number, *names) + was)
    generated = sum(kernel.is_generated for kernel in function.kernels)
    parts += [units.kernels(generated)] if generated else []
    time = words.known_duration(sum(compile.seconds for compile in compiles))
    return [*parts, time] if time else parts


def _counts(ended: Ended, compiles: tuple[Compile, ...]) -> tuple[int, int, int]:
    """Graphs, graph breaks and recompilations."""
    ids = {compile.id for compile in compiles}
    breaks = sum(1 for f in ended.report.findings if f.kind == graph_break.KIND.id and not ids.isdisjoint(f.compiles))
    return graph_count(compiles), breaks, sum(1 for compile in compiles if is_recompile(compile))


def graph_count(compiles: tuple[Compile, ...]) -> int:
    """Distinct frames that gave a graph: a recompilation of a frame is not a further graph, a resume function is."""
    return len({frame_of(compile) for compile in compiles if has_graph(compile)})
