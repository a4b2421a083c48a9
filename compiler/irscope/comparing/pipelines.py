"""What several pipelines made of one script: what each took and fused, what it cost, how fast it is, how exact it is.

All of it is read from the runs by roles and ranks of stages, so it holds for any pipeline.  What a pipeline does not tell
is a `Figure` without a value and with the reason, never a guess.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from irscope.ir.roofline import Work, kernel_costs, node_costs
from irscope.pipelines.registry import pipelines, role_of, stage_kind
from irscope.protocol import Compile, CompileOutcome, Report, Severity, StageRef
from irscope.provenance import SOURCE, Element, Provenance
from irscope.store.store import Store
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.stages import KERNELS, Role


@dataclass(frozen=True)
class Figure:
    """A number, or why there is none."""

    value: float | None
    why: str = ""
    """Why there is none; of one that is there: what it is about, if that is not the same for all pipelines."""


@dataclass(frozen=True)
class Timing:
    """Seconds of one call of every program, over the rounds.  Without a measurement all are None; `why` has the reason."""

    median: float | None
    low: float | None
    """The first quartile."""
    high: float | None
    """The third quartile."""
    rounds: int
    why: str = ""


@dataclass(frozen=True)
class Left:
    """Something that the pipeline did not take, or warned of: a place with the reason."""

    what: str
    why: str
    file: str
    line: int


@dataclass(frozen=True)
class PipelineFigures:
    """What one pipeline made of the script."""

    pipeline: str
    title: str
    run: str
    """The run's ID; empty if the run could not begin."""
    problem: str
    """Why the script did not come to its end with this pipeline; empty if it did."""
    operators: Figure
    """In the graphs that were captured from the user's code."""
    taken: Figure
    """The operators that are in the last stage that the pipeline shows."""
    fused: Figure
    """The operators that share a kernel, or an operation of the last stage, with another one."""
    gone: tuple[Left, ...]
    """The captured operators that are not in the last stage."""
    left: tuple[Left, ...]
    """What runs as Python, and what was warned of."""
    kernels: Figure
    library_calls: Figure
    moved_bytes: Figure
    """Read and written by one call of everything that was compiled."""
    compile_seconds: Figure
    """With the capture of all stages."""
    call: Timing
    eager: Timing
    """The time of the same programs without compile, in the same process and the same rounds."""
    difference: Figure
    """The largest absolute difference to eager of any element of any output."""
    relative_difference: Figure
    """That, over the largest element of the output."""
    stages: tuple[str, ...]
    """IDs of its stages along the way down."""


@dataclass(frozen=True)
class Comparison:
    """One script through several pipelines: the JSON of ``irscope compare --json``, and what the store keeps."""

    script: str
    pipelines: tuple[PipelineFigures, ...]


def figures_of(
    store: Store, report: Report | None, name: str, problem: str, measured: Mapping[str, Any]
) -> PipelineFigures:
    """The figures of one pipeline.

    Args:
        report: Its run; None if there is none.
        measured: What its process told: ``programs`` and ``rounds``, as `irscope.driver.rounds.Measured` has them.
    """
    programs, rounds = measured.get("programs") or [], measured.get("rounds") or []
    why = problem or ("" if programs else "The script calls no program that torch.compile made.")
    compiles = report.compiles if report else ()
    of_operators = _operators(store, report, why)
    kernels, library = _kernels(report, name, why)
    return PipelineFigures(
        name,
        pipelines()[name].title,
        report.run if report else "",
        problem,
        *of_operators[:3],
        gone=of_operators[3],
        left=tuple(_left(report, programs)) if report else (),
        kernels=kernels,
        library_calls=library,
        moved_bytes=_moved(store, report, why),
        compile_seconds=Figure(sum(one.seconds for one in compiles)) if compiles else Figure(None, why or _NOTHING),
        call=_timing(programs, rounds, "seconds", why),
        eager=_timing(programs, rounds, "eager", why),
        difference=_difference(programs, "absolute", why),
        relative_difference=_difference(programs, "relative", why),
        stages=_stages(compiles),
    )


_NOTHING = "Nothing was compiled."


# --- operators --------------------------------------------------------------------------------------------------------


def _operators(store: Store, report: Report | None, why: str) -> tuple[Figure, Figure, Figure, tuple[Left, ...]]:
    captured = taken = fused = 0
    gone: list[Left] = []
    if report is None or not report.compiles:
        return (*[Figure(None, why or _NOTHING)] * 3, ())  # type: ignore[return-value]
    thread = Provenance(store, report)
    for compile in report.compiles:
        ends = _ends(thread, compile)
        captured += len(ends)
        users: dict[object, int] = {}
        for units in ends.values():
            for unit in units:
                users[unit] = users.get(unit, 0) + 1
        taken += sum(bool(units) for units in ends.values())
        fused += sum(any(users[unit] > 1 for unit in units) for units in ends.values())
        gone += [_gone(thread, element) for element, units in ends.items() if not units]
    if not captured:
        return (*[Figure(None, "No operation of a graph was captured.")] * 3, ())  # type: ignore[return-value]
    return Figure(captured), Figure(taken), Figure(fused), tuple(gone)


def _ends(thread: Provenance, compile: Compile) -> dict[Element, frozenset[object]]:
    """Each captured operator with what it became at the end of the way down: kernels, else operations of the last stage."""
    stages = thread.pipeline(compile.id)
    operators = [
        item.element
        for stage in stages
        if stage_kind(stage.name).is_captured
        for item in thread.items(stage.id).items
        if item.op == "call"
    ]
    below = {element: thread.below(element) for element in operators}
    last, graphs = _last_stages(stages)
    found = {element: _units(each, last) for element, each in below.items()}
    for element, units in found.items():
        if not units and not thread.fate_of_last(element):  # a library computes it, or a kernel that another one shares
            found[element] = _units(below[element], graphs)
    return found


def _last_stages(stages: Sequence[StageRef]) -> tuple[frozenset[str], frozenset[str]]:
    """Code and kernels, and the graphs of the last rank, of the forward and of the backward; of a pipeline without code
    these are both."""
    code = frozenset(stage.id for stage in stages if role_of(stage.name) in (Role.CODE, Role.KERNEL))
    ranked = [stage for stage in stages if stage_kind(stage.name).rank is not None]
    graphs = [stage for stage in ranked if stage_kind(stage.name).is_graph] or ranked
    ranks = [stage_kind(stage.name).rank or 0 for stage in graphs]
    last = frozenset(stage.id for stage, rank in zip(graphs, ranks, strict=True) if rank == max(ranks))
    return code or last, last


def _units(below: Mapping[str, tuple[Element, ...]], last: frozenset[str]) -> frozenset[object]:
    found = {stage: elements for stage, elements in below.items() if stage in last}
    kernels = frozenset(stage for stage in found if _is_kernel(stage))
    return kernels or frozenset(one for elements in found.values() for one in elements)


def _is_kernel(stage: str) -> bool:
    return any(part == KERNELS or part.startswith(f"{KERNELS}-") for part in stage.split("/")[:-1])


def _gone(thread: Provenance, element: Element) -> Left:
    own = [one for one in thread.parents(element) if one.stage == SOURCE]  # the innermost comes first
    places = [*((one.file, one.line) for one in own), *((one.file, one.line) for one in thread.origins(element))]
    file, line = places[0] if places else ("", 0)
    return Left(element.name, thread.fate_of_last(element) or _end_of(thread, element), file, line)


def _end_of(thread: Provenance, element: Element) -> str:
    """Why what was made of it ends above the last stage; empty if that is not known."""
    below = [one for elements in thread.below(element).values() for one in elements]
    return next((reason for one in reversed(below) if (reason := thread.fate(one))), "")


def _left(report: Report, programs: Iterable[Mapping[str, Any]]) -> Iterable[Left]:
    """Compiles that failed, programs that run as Python, and warnings."""
    own = {kind.id for kind in pipelines()[report.pipeline].findings}
    for compile in report.compiles:
        if compile.outcome not in (CompileOutcome.COMPILED, CompileOutcome.GRAPH_BREAK):
            yield Left(compile.title, f"compile {compile.id}: {compile.outcome.value}", compile.file, compile.line)
    for finding in report.findings:
        if finding.kind in own or finding.severity in (Severity.WARNING, Severity.ERROR):
            yield Left(finding.kind, finding.message, finding.file, finding.range.start.line)
    for one in programs:
        if why := one.get("why_no_seconds"):
            yield Left(str(one.get("function")), str(why), str(one.get("file", "")), int(one.get("line") or 0))


# --- kernels ----------------------------------------------------------------------------------------------------------


def _kernels(report: Report | None, name: str, why: str) -> tuple[Figure, Figure]:
    if report is None or not report.compiles:
        return Figure(None, why or _NOTHING), Figure(None, why or _NOTHING)
    if not report.kernels and not any(kind.role is Role.KERNEL for kind in pipelines()[name].stages):
        untold = f"What is captured of {name} does not include its kernels."
        return Figure(None, untold), Figure(None, untold)
    generated = sum(kernel.is_generated for kernel in report.kernels)
    return Figure(generated), Figure(len(report.kernels) - generated)


def _moved(store: Store, report: Report | None, why: str) -> Figure:
    """The time of the kernels; if a pipeline does not report them, of the operations of its last graph."""
    if report is None or not report.compiles:
        return Figure(None, why or _NOTHING)
    costs = kernel_costs(store, report)
    if costs:
        return _sum_of(costs, "kernels")
    for compile in report.compiles:
        graph = next(
            (one for one in reversed(compile.stages) if stage_kind(one.name).takes_costs and not one.passed), None
        )
        if graph is None:
            return Figure(None, "No stage of it tells what its operations move.")
        try:
            costs += node_costs(store, report, graph)
        except LookupError:
            return Figure(None, "No stage of it tells what its operations move.")
    return _sum_of(costs, "operations of the last graph, each by itself")


def _sum_of(costs: Sequence[Work], what: str) -> Figure:
    moved = [one.moved for one in costs]
    unknown = sum(one is None for one in moved)
    if unknown:
        return Figure(None, f"The sizes are not known for {unknown} of {len(moved)} {what}.")
    return Figure(sum(one for one in moved if one is not None), what)


# --- what was measured ------------------------------------------------------------------------------------------------


def _timing(
    programs: Sequence[Mapping[str, Any]], rounds: Sequence[Sequence[Mapping[str, Any]]], key: str, why: str
) -> Timing:
    """Seconds of one call of every program together."""
    if key == "seconds":
        why = why or next((str(one["why_no_seconds"]) for one in programs if one.get("why_no_seconds")), "")
    sums = []
    for answers in rounds:
        seconds = [one.get(key) for one in answers]
        known = [one for one in seconds if isinstance(one, (int, float))]
        if len(known) == len(programs) and known:
            sums.append(sum(known))
    if why or not sums:
        return Timing(None, None, None, 0, why or "Its process ended before it could be timed.")
    low, median, high = statistics.quantiles(sums, n=4, method="inclusive") if len(sums) > 1 else sums * 3
    return Timing(median, low, high, len(sums))


def _difference(programs: Sequence[Mapping[str, Any]], key: str, why: str) -> Figure:
    if why:
        return Figure(None, why)
    found = [one.get("difference") for one in programs]
    known = [float(one[key]) for one in found if isinstance(one, dict)]
    if len(known) < len(programs):
        untold = next((one.get("why_no_difference") for one in programs if not one.get("difference")), "")
        return Figure(None, str(untold or "It was not compared."))
    return Figure(max(known))


def _stages(compiles: Iterable[Compile]) -> tuple[str, ...]:
    """On the way down, without versions after each pass."""
    refs = [stage for compile in compiles for stage in compile.stages]
    return tuple(one.id for one in refs if stage_kind(one.name).rank is not None and not one.passed)
