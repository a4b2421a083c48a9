"""The line over a compiled function: ``2 graphs · 1 break · 3 recompiles · 5 kernels · 1.8 s``; over the call of
``torch.compile`` how the run went, and the same of a library's model, with its name; over a stage, its age."""

from __future__ import annotations

from collections.abc import Sequence

from irscope.findings.kinds import graph_break, recompilation
from irscope.findings.standing import Next, State, label, point, standing_of
from irscope.measures.compiled import has_graph
from irscope.protocol import Compile
from irscope.vocabulary import units
from lsprotocol import types

from irscope_server.base import words
from irscope_server.base.compiled import standing_sentence
from irscope_server.base.context import Document, ReadContext
from irscope_server.base.functions import Outline, outline_of
from irscope_server.base.not_compiled import HEAD
from irscope_server.base.run_age import age_of
from irscope_server.base.stage_uris import NoDocument, parts_of
from irscope_server.base.texts import FileKey, script_key, to_units
from irscope_server.language.context import SourceContext
from irscope_server.language.measured_lines import BEFORE_EDIT
from irscope_server.language.views import PlacedFunction
from irscope_server.running.results import Ended, frame_of, is_recompile

_GRAPH = ("graph", "graphs")
_RUNNING = "running…"
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
    found = _verdict(context, document, outline, *([_RUNNING] if run is not None else [])) if outline else []
    labelled = {line for line, _ in found}
    if run is not None:
        titles = sorted(_running_titles(functions, outline, labelled).items())
        found += [(line, _to_run(document, run.live.run, line, title)) for line, title in titles]
    else:
        found += [(each.first_line, _of_function(context, document, each, labelled)) for each in functions]
    if not found and outline and _needs_entry(context, document.key):
        choose = types.Command(
            "choose the script that runs this module", CHOOSE_COMMAND, arguments=[{"uri": document.uri}]
        )
        found = [(line, choose) for line in sorted(_marked(outline) or _first_call(outline))]
    return [types.CodeLens(_range_of(lines, line, context.encoding), command) for line, command in found]


def _verdict(
    context: SourceContext, document: Document, outline: Outline, *last: str
) -> list[tuple[int, types.Command]]:
    """How the last run of a script went, over its first call of ``torch.compile``; the whole sentence is in the hover.

    Args:
        last: What always comes after it.
    """
    ended = context.results.judged(context.key_of(document.path))
    places = sorted(_first_call(outline) or _marked(outline))
    if ended is None or not ended.run or not places or script_key(document.key) != ended.script_key:
        return []
    standing = standing_of(ended.report)
    said = point(standing, document.path)
    if context.texts.are_edited(ended.texts):
        said = (said[0], BEFORE_EDIT)  # The line to begin with may be another one now.
    command = _to_run(document, ended.run, places[0], words.of_lens(said, *last), standing_sentence(ended.report))
    if standing.state is State.CAUSES and said[-1] != BEFORE_EDIT:
        first = standing.causes[0]
        place = {"uri": context.uri_of(first.file), "line": first.range.start.line - 1}
        command = types.Command(command.title, PLACE_COMMAND, command.tooltip, [place])
    elif standing.next is Next.PROFILE and said[-1] != BEFORE_EDIT:
        target = {"run": ended.run, "uri": document.uri, "line": places[0], "next": standing.next.value}
        command = types.Command(command.title, COMMAND, command.tooltip, [target])
    return [(places[0], command)]


def _of_function(context: SourceContext, document: Document, function: PlacedFunction, said: set[int]) -> types.Command:
    """What is said over a compiled function; without how it went on the lines that say it of the run."""
    parts = _parts(function)
    shown = [*parts[:1], *parts[2:]] if function.elsewhere and function.first_line in said else parts
    title = words.of_lens(shown, *([BEFORE_EDIT] if function.stale else []))
    if (why := function.not_compiled) is not None and why.file:
        place = {"uri": context.uri_of(why.file), "line": why.line}
        return types.Command(title, PLACE_COMMAND, " · ".join(parts), [place])
    return _to_run(document, function.ended.run, function.first_line, title, " · ".join(parts))


def _to_run(document: Document, run: str, line: int, title: str, whole: str | None = None) -> types.Command:
    return types.Command(title, COMMAND, whole, [{"run": run, "uri": document.uri, "line": line}])


def _range_of(lines: Sequence[str], line: int, encoding: str) -> types.Range:
    text = lines[line] if line < len(lines) else ""
    start = types.Position(line, len(text) - len(text.lstrip()))
    return types.Range(start, types.Position(line, to_units(text, len(text), encoding)))


def _running_titles(functions: Sequence[PlacedFunction], outline: Outline | None, said: set[int]) -> dict[int, str]:
    """Titles by line while the script runs; ``said``: lines that say so already."""
    titles = {function.first_line: words.of_lens(_parts(function), _RUNNING) for function in functions}
    places = _marked(outline) if outline else set()
    if not titles and not places and outline:
        places = _first_call(outline)
    return {**dict.fromkeys(places - said, _RUNNING), **titles}


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
