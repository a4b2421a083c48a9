"""The requests of the graph panel: a graph with its versions, and the kernels that its nodes became."""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Protocol

from irscope.ir.graphs import edges_of, parse_graph
from irscope.ir.roofline import peaks_of
from irscope.pipelines.registry import role_of, stage_kind
from irscope.protocol import Compile, Report, StageRef
from irscope.provenance import SOURCE, Element, Provenance, chain
from irscope.provenance.graph_facts import base_of, calls_above, facts_along, graphs_in_order, modules_above
from irscope.store.store import Store
from irscope.vocabulary.stages import Role, StageKind

from irscope_server.base import words
from irscope_server.base.context import ReadContext
from irscope_server.base.limits import collecting_nothing
from irscope_server.base.messages import Encoded
from irscope_server.base.params import GraphParams, StageParams
from irscope_server.base.results import Place
from irscope_server.base.stage_uris import uri_of_stage
from irscope_server.base.symbols import symbols_of_compile, symbols_shown
from irscope_server.base.wire import to_wire
from irscope_server.graph.answers import GraphColumns, GraphHead, GraphKernels, GraphVersion, KernelCall
from irscope_server.graph.columns import columns, compared
from irscope_server.graph.known import known_columns
from irscope_server.graph.schedule import Schedule, schedule_columns, schedule_names
from irscope_server.graph.targets import cpu_of, targets
from irscope_server.stages.tree import kernel_items, stage_named

_KEPT = 4
"""Answers that are kept, at a few megabytes each: a panel that is shown again, or goes between two passes."""


class GraphCache:
    """The last answers, by what was asked."""

    def __init__(self) -> None:
        self._answers: OrderedDict[object, Encoded] = OrderedDict()

    def get(self, key: object) -> Encoded | None:
        """The answer to a question; None if it is not kept."""
        if key in self._answers:
            self._answers.move_to_end(key)
        return self._answers.get(key)

    def put(self, key: object, answer: Encoded) -> Encoded:
        """Keep an answer, and drop the oldest ones; returns the answer."""
        self._answers[key] = answer
        while len(self._answers) > _KEPT:
            self._answers.popitem(last=False)
        return answer


class GraphContext(ReadContext, Protocol):
    """The run store, and the last answers of the graph panel."""

    @property
    def graphs(self) -> GraphCache:
        """The last answers of the graph panel."""


async def graph(context: GraphContext, params: GraphParams) -> Encoded:
    """Raises LookupError for an unknown run or stage, ValueError for a stage that is not a graph."""
    report = await context.archive.report(params.run)
    compile, stage = stage_named(report, params.stage)
    before = stage_named(report, params.compare_with)[1] if params.compare_with else None
    key = ("graph", params, len(compile.stages))
    if (known := context.graphs.get(key)) is not None:
        return known

    def answer(store: Store) -> Encoded:
        with collecting_nothing():
            body = _columns(store, params.run, compile, stage, before, context.uri_of)
        gpu = store.device_of(params.run)
        cpu = cpu_of(store, report.script)
        peaks = peaks_of(gpu) or (None if gpu else cpu)
        head = GraphHead(
            title=f"{stage_words(stage)} of {compile.title} ({compile.id})",
            stage_uri=uri_of_stage(params.run, stage.id, stage.language),
            compare_with=before.id if before else None,
            before_uri=uri_of_stage(params.run, before.id, before.language) if before else None,
            versions=tuple(versions_of(compile)),
            targets=targets(cpu),
            gpu=gpu,
            ran_on=peaks.name if peaks else "",
            symbols=symbols_shown(symbols_of_compile(store, params.run, compile), " ".join(body["details"])),
        )
        with collecting_nothing():
            text = json.dumps({**to_wire(head), **body}, separators=(",", ":"))
            return Encoded(json.dumps({"text": text}) if params.as_text else text)

    return context.graphs.put(key, await context.archive.ask_aside(answer))


def _columns(
    store: Store, run: str, compile: Compile, stage: StageRef, before: StageRef | None, uri_of: Callable[[str], str]
) -> GraphColumns:
    if stage_kind(stage.name).role in (Role.SCHEDULE, Role.FUSION):
        return schedule_columns(_schedule(store, run, compile, stage, uri_of))
    text = store.stage_text(run, stage.id)
    if before is None:
        if not stage.passed and (known := _known_columns(store, run, compile, stage, text, uri_of)) is not None:
            return known
        graph = parse_graph(text)
        above = calls_above(store, run, compile, stage)
        return columns(graph, edges_of(graph), facts_along(store, run, compile, stage), uri_of, calls_above=above)
    both = compared(store.stage_text(run, before.id), text)
    facts = {**facts_along(store, run, compile, before), **facts_along(store, run, compile, stage)}
    return columns(both.graph, both.edges, facts, uri_of, both.states, calls_above(store, run, compile, stage))


def _known_columns(
    store: Store, run: str, compile: Compile, stage: StageRef, text: str, uri_of: Callable[[str], str]
) -> GraphColumns | None:
    try:
        data = store.stage_data(run, stage.id)
        return known_columns(
            text,
            data,
            lambda: modules_above(store, run, compile, stage),
            uri_of,
            lambda: calls_above(store, run, compile, stage),
        )
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError):
        return None  # none, or data of another version: what the text tells is shown


def _schedule(store: Store, run: str, compile: Compile, stage: StageRef, uri_of: Callable[[str], str]) -> Schedule:
    """The answer for a schedule or for fusion decisions, with what the stages beside it know."""

    def beside(role: Role, fits: Callable[[StageKind], bool]) -> StageRef | None:
        found = chain.siblings(compile.stages, stage, role)
        return next((one for one in found if fits(stage_kind(one.name))), None)

    def data(ref: StageRef | None) -> Any:
        return (store.stage_data(run, ref.id) if ref else None) or {}

    before = beside(Role.SCHEDULE, lambda kind: not kind.is_fused)
    after = beside(Role.SCHEDULE, lambda kind: kind.is_fused)
    post = beside(Role.GRAPH, lambda kind: kind.is_lowered)
    described = before or after
    return Schedule(
        store.stage_text(run, stage.id),
        store.stage_text(run, described.id) if described else "",
        data(before).get("nodes", []),
        data(after).get("nodes", []),
        before is None or stage.id != before.id,
        data(beside(Role.FUSION, lambda _: True)),
        (_columns(store, run, compile, post, None, uri_of) if post else None) or {},
    )


async def graph_kernels(context: GraphContext, params: StageParams) -> Encoded:
    """Which calls of kernels each node of a graph ended in; on its own, since it follows the nodes all the way down."""
    report = await context.archive.report(params.run)
    compile, stage = stage_named(report, params.stage)
    key = ("kernels", params, len(compile.stages))
    if (known := context.graphs.get(key)) is not None:
        return known

    def follow() -> Encoded:
        with Store(context.archive.path) as store:  # seconds for a big graph, in which others may use the archive's
            calls, nodes = kernel_calls(store, report, stage)
            kernels = [kernel for kernel in report.kernels if kernel.compile == compile.id]
            found = kernel_items(report, kernels, context.uri_of, lambda one: _text(store, params.run, one))
        places = {item.name: Place(item.uri, item.line) for item in found}
        answer = GraphKernels(tuple(KernelCall(kernel, call, places.get(kernel)) for kernel, call in calls), nodes)
        return Encoded(json.dumps(to_wire(answer), separators=(",", ":")))

    return context.graphs.put(key, await asyncio.to_thread(follow))


def stage_words(stage: StageRef) -> str:
    """``Post-grad graph after remove_noop_ops``."""
    if not stage.passed:
        return words.stage_title(stage)
    title = words.stage_title(base_of(stage))
    known = {"between_passes": "between passes", "start": "before its passes"}
    return f"{title} {known.get(stage.passed, f'after {stage.passed}')}"


def versions_of(compile: Compile) -> list[GraphVersion]:
    """The graphs of a compile along the pipeline, and after each pass that changed one, each with the one before it.

    ``before`` is empty if nothing comes before that could be compared: of the first graph of all.
    """
    found: list[GraphVersion] = []
    for backward in (False, True):
        last = ""
        for stage in graphs_in_order(compile, backward):
            shared = chain.is_shared(stage)
            if not (backward and shared):
                title, backwards = stage_words(stage), chain.is_backward(stage)
                found.append(GraphVersion(stage.id, title, stage.passed, last, backwards))
            last = stage.id
    return found


def kernel_calls(store: Store, report: Report, stage: StageRef) -> tuple[list[tuple[str, int]], list[list[int]]]:
    """Calls of kernels as ``(kernel, which of its calls)`` in the order of the output code, and each node's among them.

    The nodes are those of the stage's text, in its order.
    """
    thread = Provenance(store, report, versions=bool(stage.passed))
    codes = {each.id for one in report.compiles for each in one.stages if role_of(each.name) is Role.CODE}
    below = _memoized(thread.children, codes)
    home = stage.id
    if stage_kind(stage.name).role in (Role.SCHEDULE, Role.FUSION):
        # The nodes that are drawn are those before fusion, whichever of the stages is shown.
        compile, _ = stage_named(report, stage.id)
        names = schedule_names(_schedule(store, report.run, compile, stage, str))
        schedules = chain.siblings(compile.stages, stage, Role.SCHEDULE)
        home = next((one.id for one in schedules if not stage_kind(one.name).is_fused), home)
    else:
        names = [node.name for node in parse_graph(store.stage_text(report.run, stage.id)).nodes]
    found: dict[str, dict[Element, None]] = {}
    for element in thread.elements(home):
        found[element.name] = below(element)
    order = sorted({one for calls in found.values() for one in calls}, key=lambda one: (one.stage, one.line))
    numbers = {one: number for number, one in enumerate(order)}
    split = [one.name.rpartition(":") for one in order]
    return (
        [(kernel, int(call)) for kernel, _, call in split],
        [sorted(numbers[one] for one in found.get(name, ())) for name in names],
    )


def _memoized(
    children: Callable[[Element], tuple[Element, ...]], codes: set[str]
) -> Callable[[Element], dict[Element, None]]:
    """The calls in output code (``codes``: the IDs of its stages) below an element: each is followed down once, however many ways lead to it."""
    known: dict[Element, dict[Element, None]] = {}

    def below(element: Element) -> dict[Element, None]:
        todo = [element]
        while todo:  # by hand: a graph after many passes is deeper than Python's stack
            one = todo[-1]
            if one in known:
                todo.pop()
                continue
            if one.stage in codes or one.stage == SOURCE:
                known[one] = {one: None} if one.name.rpartition(":")[2].isdigit() else {}
                continue
            under = children(one)
            missing = [child for child in under if child not in known]
            if missing:
                todo += missing
            else:
                known[one] = {call: None for child in under for call in known[child]}
        return known[element]

    return below


def _text(store: Store, run: str, stage: str) -> str:
    try:
        return store.stage_text(run, stage)
    except LookupError:
        return ""
