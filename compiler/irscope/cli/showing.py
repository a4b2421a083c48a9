"""``irscope show``: a run, or one stage, kernel or line of it."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import os
import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from irscope.cli.diffing import no_stage
from irscope.cli.report import document, report_lines, use_cells
from irscope.cli.stage_texts import print_stages
from irscope.cli.tables import table
from irscope.cli.text import Paint, left_out, path_in_package, print_json, short_path, to_stdout
from irscope.findings.control import controlled
from irscope.ir.guards import Guard, GuardList, guards_of, without_inductors
from irscope.pipelines.registry import role_of
from irscope.protocol import PREDICTED, Compile, Kernel, Report, StageRef, to_json
from irscope.provenance.kernel_groups import groups_of
from irscope.store.store import Store
from irscope.usercode.reading import name_among
from irscope.usercode.source import line_text
from irscope.vocabulary.stages import Role
from irscope.vocabulary.suggestions import did_you_mean, listed
from irscope.vocabulary.units import count, duration, size
from irscope.vocabulary.visible import printable

if TYPE_CHECKING:
    from irscope.provenance.lines import LineStep, LineTrail, StageElement

_MOST_NODES = 20
"""The most nodes of a stage that came from a line; a layer that is there a hundred times has as many of each."""
_MOST_NODES_JSON = 100
_MOST_MEASURED = 5
"""Rows of each table of measured time."""
_MOST_GUARDS = 100
"""The most guards of a compile; a model of a hundred layers has ten thousand, which take a second to read."""


def show(options: argparse.Namespace) -> int:
    """Prints what was asked for.  Raises LookupError if it is missing."""
    with Store(options.store) as store:
        run = _run_of_line(store, options) or store.find_run(options.run)
        use_cells(store, run)
        report = controlled(store.report(run), store.lane_of(run))
        if options.target and not (options.costs and _runs_elsewhere(store, report, options)):
            report = report.of_target(options.target)
        if options.line is not None:
            return _line(store, report, options)
        if options.kernel is not None:
            return _kernel(store, report, options)
        if options.costs or options.resources or options.autotuning:
            return _of_kernels(store, report, options)
        if options.stage is not None:
            return _stage(store, report, options)
        if options.guards:
            return _guards(store, report, options)
        if options.ranks:
            from irscope.cli.rank_tables import show_ranks

            return show_ranks(report, as_json=options.json)
        if options.tree is not None:
            return _tree(store, report, options)
        if options.compile is not None:
            return _compile(_find_compile(report, options.compile), options)
        return _whole(store, report, options)


def _whole(store: Store, report: Report, options: argparse.Namespace) -> int:
    """Prints the report of a run, with its measured time."""
    if options.json:
        print_json(document(report))
    else:
        to_stdout(report_lines(report, Paint(sys.stdout)))
        _measured(store, report.run, options.all)
    return 0


def _tree(store: Store, report: Report, options: argparse.Namespace) -> int:
    """Prints a tree of measures, or what changed in it since another run."""
    from irscope.cli.trees import show_tree

    than = store.report(store.find_run(options.than)) if options.than else None
    return show_tree(
        store, _only(report, options.compile), options.tree, than, show_all=options.all, as_json=options.json
    )


def _of_kernels(store: Store, report: Report, options: argparse.Namespace) -> int:
    """Prints a table of kernels; what makes it is imported here, since few commands need it."""
    if options.costs:
        from irscope.cli.costing import show_costs

        return show_costs(store, report, options)
    if options.resources:
        from irscope.cli.resources import show_resources

        return show_resources(store, report, options)
    from irscope.cli.autotuning import show_autotuning

    return show_autotuning(store, report, options)


def _runs_elsewhere(store: Store, report: Report, options: argparse.Namespace) -> bool:
    """Whether nothing was predicted for a target, and what the run itself has can be bounded on it: the nodes of a graph,
    and kernels that are not for the CPU."""
    is_predicted = any(each.target == options.target for each in report.predictions)
    if is_predicted:
        return "/" in (options.stage or "")
    is_of_cpu = any(kernel.language == "cpp" for kernel in report.kernels) and not store.device_of(report.run)
    return options.stage is not None or not is_of_cpu


def _measured(store: Store, run: str, show_all: bool) -> None:
    """Prints the measured time of a run that was profiled."""
    from irscope.cli.measured import profile_lines
    from irscope.profiling.changes import stored_profile

    if (found := stored_profile(store, run)) is not None:
        to_stdout(["", *profile_lines(found, Paint(sys.stdout), _MOST_MEASURED, show_all)])


def _find_compile(report: Report, id: str) -> Compile:
    found = next((compile for compile in report.with_predictions if compile.id == id), None)
    if found is None:
        ids = [compile.id for compile in report.with_predictions]
        raise LookupError(f"Run {report.run} has no compile {id}. It has: {listed(ids)}.{did_you_mean(id, ids)}")
    return found


def _only(report: Report, id: str | None) -> Report:
    """The run with one compile of it, if that is asked for."""
    if id is None:
        return report
    kernels = tuple(kernel for kernel in report.kernels if kernel.compile == id)
    return dataclasses.replace(report, compiles=(_find_compile(report, id),), kernels=kernels)


def _compile(compile: Compile, options: argparse.Namespace) -> int:
    if options.json:
        print_json(to_json(compile))
        return 0
    print(
        printable(f"{compile.id}  {compile.title}  {short_path(compile.file)}:{compile.line}  {compile.outcome.value}")
    )
    if compile.target:
        print(PREDICTED)
    rows = []
    for versions, group in groupby(compile.stages, key=lambda stage: stage.id.rpartition("/")[0] * bool(stage.passed)):
        if versions:  # of one stage, one for each pass that changed it
            passes = list(group)
            last = passes[-1].id.rpartition("/")[2]
            rows.append(
                [f"  {passes[0].id} … {last}" if len(passes) > 1 else f"  {passes[0].id}", "by pass", "", "", ""]
            )
        else:
            for stage in group:
                nodes = "" if stage.nodes is None else count(stage.nodes)
                rows.append([stage.id, stage.name, stage.language, nodes, size(stage.bytes)])
    to_stdout(
        table(
            ["stage", "name", "language", "nodes", "size"],
            rows,
            Paint(sys.stdout),
            right=frozenset({3, 4}),
            whole=frozenset({0}),
        )
    )
    return 0


def _guards(store: Store, report: Report, options: argparse.Namespace) -> int:
    compiles = [_find_compile(report, options.compile)] if options.compile else list(report.compiles)
    lists, measured_alone = [], []
    for compile in compiles:
        if (found := _text_of_guards(store, report, compile)) is not None:
            text, costs = found
            lists.append(guards_of(compile, text, report.compiles, costs, None if options.all else _MOST_GUARDS))
            measured_alone.append([cost for _, _, cost in costs or () if cost is not None])
    if options.json:
        print_json(to_json(lists))
        left_out(sum(guards.count - len(guards.guards) for guards in lists), "guard")
        return 0
    paint = Paint(sys.stdout)
    path_of = functools.cache(short_path)  # a hundred guards a line are nothing special
    for guards, alone in zip(lists, measured_alone, strict=True):
        print(paint(_title_of_guards(guards, alone), "bold"))
        rows = [_guard_row(guard, path_of) for guard in guards.guards]
        to_stdout(table(["", "cost", "kind", "watches", "made at", "check"], rows, paint, right=frozenset({1})))
        if guards.count > len(guards.guards):
            print(paint(f"… and {count(guards.count - len(guards.guards))} more (--all)", "dim"))
    if not lists:
        print("This run has no guards: nothing was compiled.")
    return 0


def _text_of_guards(store: Store, report: Report, compile: Compile) -> tuple[str, Any] | None:
    """The guards of a compile and what each costs; of a target those that its own code generator added."""
    stages = [stage.id for stage in compile.stages if role_of(stage.name) is Role.GUARDS]
    if not stages:
        return None
    first, *added = [store.stage_text(report.run, id) for id in stages]
    if compile.target:
        return "".join([without_inductors(first), *added]), None
    return "".join([first, *added]), store.stage_data(report.run, stages[0])


def _title_of_guards(guards: GuardList, alone: list[int]) -> str:
    latency = f", one check of all takes {duration(guards.latency / 1e6)}" if guards.latency is not None else ""
    measured = f"; {len(alone)} of them, measured alone, {duration(sum(alone) / 1e9)}" if alone else ""
    return f"{guards.compile}  {count(guards.count, 'guard')}{latency}{measured}"


def _guard_row(guard: Guard, path_of: Callable[[str], str]) -> list[str]:
    return [
        f"failed ×{guard.failed}" if guard.failed else "",
        "" if guard.nanoseconds is None else duration(guard.nanoseconds / 1e9),
        guard.kind,
        printable(guard.source),
        f"{path_of(guard.origin.file)}:{guard.origin.line}" if guard.origin else "",
        printable(guard.check),
    ]


def _stage(store: Store, report: Report, options: argparse.Namespace) -> int:
    from irscope.lowering import made_on_demand, make

    wanted = options.stage
    if made_on_demand(report, wanted) and not _with_id(wanted, report.with_predictions):
        make(store, report, wanted, options.python)
        report = store.report(report.run)
    compiles = [_find_compile(report, options.compile)] if options.compile else list(report.compiles)
    if _with_id(wanted, report.predictions):
        compiles = list(report.predictions)
    stages = [stage for compile in compiles for stage in compile.stages]
    chosen = _with_id(wanted, compiles) or [stage for stage in stages if stage.name == wanted and not stage.passed]
    if not chosen:
        raise no_stage(report, wanted, stages)
    return print_stages(store, report, chosen, options)


def _with_id(wanted: str, compiles: Iterable[Compile]) -> list[StageRef]:
    return [stage for compile in compiles for stage in compile.stages if stage.id == wanted]


def _kernel(store: Store, report: Report, options: argparse.Namespace) -> int:
    every = (*report.kernels, *report.predicted_kernels)
    kernels = [k for k in every if k.name == options.kernel and options.compile in (None, k.compile)]
    if not kernels:
        names = [kernel.name for kernel in every]
        there = listed(names) if names else "none; kernels need the deep lane"
        near = did_you_mean(options.kernel, names)
        raise LookupError(f"Run {report.run} has no kernel {options.kernel}. It has: {there}.{near}")
    by_id = {stage.id: stage for compile in report.with_predictions for stage in compile.stages}
    return print_stages(store, report, [by_id[k.stage] for k in kernels if k.stage in by_id], options)


def _line(store: Store, report: Report, options: argparse.Namespace) -> int:
    file, _, number = _as_stored(options.line).rpartition(":")
    if not file or not number.isdigit():
        raise LookupError(f"--line needs FILE:LINE, as in model.py:42, not {options.line!r}.")
    from irscope.provenance.lines import trail_of
    from irscope.provenance.trails import keep_trails

    path, line = _known_file(report, file), int(number)
    most = None if options.all else _MOST_NODES_JSON if options.json else _MOST_NODES
    trail = trail_of(store, report, path, line, most)
    if options.json:
        asked = {"run": report.run, "file": path, "line": line, "text": line_text(path, line).strip()}
        print_json({**asked, **to_json(trail)})
        if most is not None:
            left_out(sum(max(len(step.places) - most, 0) for step in trail.steps if step.nodes), "node")
    else:
        paint = Paint(sys.stdout)
        print(paint(printable(f"run {report.run} of {short_path(report.script)}"), "dim"))
        print(paint(f"{short_path(path)}:{line}  ", "bold") + printable(line_text(path, line).strip()))
        codes = {
            stage.id for compile in report.compiles for stage in compile.stages if role_of(stage.name) is Role.CODE
        }
        rows = [*_called_lines(trail, paint, most), *_trail_lines(trail, codes, paint, most)]
        to_stdout(rows or [_nothing_came_from(path)])
    with contextlib.suppress(sqlite3.Error):  # a run of the editor's, or of an older version: the next time is faster
        keep_trails(store, report.run)
    return 0


def _nothing_came_from(file: str) -> str:
    if path_in_package(file).startswith("torch/"):
        return "PyTorch tells no lines of its own modules: the line that calls the module has what came from it."
    return "Nothing in this run came from this line."


def _run_of_line(store: Store, options: argparse.Namespace) -> str | None:
    """The newest run that had to do with the file of ``--line`` and came to its end; else the newest; None if
    a run is named, or none had."""
    if options.run is not None or options.line is None:
        return None
    return store.best_run(os.path.abspath(_as_stored(options.line).rpartition(":")[0]))


def _as_stored(name: str) -> str:
    """A name as the store has it: an argument has surrogates where the locale's encoding is not UTF-8."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _known_file(report: Report, name: str) -> str:
    """The file as the run names it: the one of that path, else the only one that ends so."""
    known = {report.script, *(c.file for c in report.compiles), *(o.file for k in report.kernels for o in k.origins)}
    known |= {part.file for kernel in report.kernels for part in kernel.lines}
    known |= {line.file for c in report.compiles for line in (*c.callers, *c.backward_callers)}
    path = name_among(known, os.path.abspath(name))
    if path in known:
        return path
    ending = [file for file in known if file.replace("\\", "/").endswith("/" + name.replace("\\", "/"))]
    return ending[0] if len(ending) == 1 else path


def _node_lines(step: LineStep, paint: Paint) -> Iterator[str]:
    fates = {place.name: place.fate for place in step.places if place.fate}
    for node in step.nodes:
        detail = f"  {paint(printable(node.detail), 'dim')}" if node.detail else ""
        fate = f"  {paint(printable(f'→ {fates[node.name]}'), 'dim')}" if node.name in fates else ""
        yield f"    {printable(node.name)} = {printable(node.target)}{detail}{fate}"


def _place_lines(places: Sequence[StageElement], paint: Paint) -> Iterator[str]:
    head = ""
    if places and places[0].name.isdigit():  # of a kernel's text, or what is below it
        head = "lines " if len(places) > 1 else "line "
    yield f"    {head}{printable(', '.join(place.name for place in places))}"
    for place in places:
        if place.fate:
            yield f"    {printable(place.name)}{paint(f'  → {printable(place.fate)}', 'dim')}"


def _trail_lines(trail: LineTrail, codes: set[str], paint: Paint, most: int | None) -> list[str]:
    lines = []
    for step in trail.steps:
        if step.stage in codes:
            continue  # its kernels are listed by themselves
        lines.append(f"  {paint(step.stage, 'cyan')}")
        lines += _node_lines(step, paint) if step.nodes else _place_lines(step.places[:most], paint)
        if most is not None and len(step.places) > most:
            lines.append(paint(f"    … and {count(len(step.places) - most)} more (--all)", "dim"))
    called = {kernel for each in trail.called for kernel in each.kernels}
    lines += [
        f"  {paint('kernel', 'green')} {printable(kernel.name)}  {paint(f'{kernel.language}, {kernel.stage}', 'dim')}"
        for kernel in trail.kernels
        if kernel not in called
    ]
    return lines


def _called_line(kernel: Kernel, paint: Paint) -> str:
    inner = kernel.innermost
    where = f", {short_path(path_in_package(inner.file))}:{inner.line}" if inner is not None else ""
    told = f", {kernel.checked}" if kernel.checked else ""
    return f"{printable(kernel.name)}  {paint(printable(f'{kernel.language}{where}{told}'), 'dim')}"


def _called_lines(trail: LineTrail, paint: Paint, most: int | None) -> list[str]:
    """What a line calls: the compiles, and their kernels by module."""
    lines = []
    for called in trail.called:
        side = "the backward of " if called.is_backward else ""
        kernels = count(len(called.kernels), "kernel")
        lines.append(f"  calls {side}{paint(called.compile, 'cyan')} {printable(called.title)}: {kernels}")
        shown = 0
        for group in groups_of(called.kernels, {called.compile: called.title}):
            if most is not None and shown >= most:
                lines.append(paint(f"    … and {count(len(called.kernels) - shown)} more (--all)", "dim"))
                break
            kind = f"  {paint(printable(group.module_class), 'dim')}" if group.module_class != group.title else ""
            lines.append(f"    {printable(group.title)}{kind}")
            left = group.kernels if most is None else group.kernels[: most - shown]
            lines += [f"      {_called_line(kernel, paint)}" for kernel in left]
            shown += len(left)
    return lines
