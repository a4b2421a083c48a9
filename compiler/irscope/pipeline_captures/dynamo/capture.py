"""What is captured of any backend: its graph, what it returned, and whether that really ran."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from irscope.capture.dynamo import DynamoCapture
from irscope.capture.lanes import hooks_for
from irscope.capture.nodes import NodeWriter
from irscope.capture.run_book import RunBook
from irscope.events.trace import Record
from irscope.findings.places import function_range
from irscope.internals import backends
from irscope.internals.graph_frames import graph_of
from irscope.internals.graph_runs import Watch, is_graph_itself, ran_itself, text_of
from irscope.internals.hooks import Hook
from irscope.pipeline_captures.dynamo.returned import backend_described, described, graph_in, text_in
from irscope.pipeline_captures.inductor import trace
from irscope.pipelines.dynamo import stages
from irscope.protocol import CaptureGap, Finding
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.stages import Part, StageKind

_EVENTS: Mapping[str, StageKind] = {event: kind for event, kind in trace.EVENTS.items() if kind in stages.STAGES}


@dataclass
class _Call:
    """One call of a backend."""

    compile: str
    attempt: int
    name: str
    function: str
    operations: int
    is_for_debugging: bool
    graphs: list[tuple[Any, str]]
    """Its graph and what AOTAutograd made of it, with the operations that they had; empty when it is known what ran."""
    id: str = ""
    """The id of the stage that tells about it."""
    returned: str = ""
    is_itself: bool = False
    is_changed: bool = False
    is_by_inductor: bool = False
    facts: list[str] = field(default_factory=list)


class BackendCapture(DynamoCapture):
    """In the fast lane only what Dynamo shows; in the deep lane also what the backend makes of each graph."""

    EVENTS = _EVENTS

    def __init__(self, book: RunBook) -> None:
        super().__init__(book)
        self._nodes = NodeWriter()
        self._aot_graphs: list[tuple[Any, str]] = []
        """What AOTAutograd made of the graph of the current compile, and the operations."""
        self._calls: dict[str, _Call] = {}
        """The last one of each compile."""

    def hooks(self) -> list[Hook]:
        """What is patched in PyTorch: in the deep lane also the call of the backend."""
        watched = [backends.watched(self._called)] if self.book.is_deep else []
        return [*hooks_for(self.book.request), *super().hooks(), *watched]

    def note(self, record: Record, compile: str) -> None:
        """Notices that the backend has Inductor compile for it."""
        call = self._calls.get(compile)
        if record.event == "inductor_output_code" and call is not None and not call.is_by_inductor:
            call.is_by_inductor = True
            self._say(call, "It called Inductor, whose stages the pipeline inductor shows: --pipeline inductor.")

    def data_of(self, record: Record, compile: str, kind: StageKind, backward: bool) -> object:
        """What is known about the nodes of a graph."""
        data = super().data_of(record, compile, kind, backward)
        if data is not None or not kind.is_graph or not self.book.is_deep:
            return data
        try:
            module = graph_of(record.event)
            if module is not None and kind.part in (Part.INFERENCE, Part.FORWARD):
                self._aot_graphs.append((module, text_of(module)))
            return None if module is None else self._nodes.describe(module)
        except Exception as error:  # noqa: BLE001  the text is kept in any case
            self.book.gap(CaptureGap(f"facts about the nodes of a {kind.name}", f"{type(error).__name__}: {error}"))
            return None

    # --- the backend -------------------------------------------------------------------------------------------------

    def _called(self, backend: Any, graph: Any, inputs: Any) -> Any:
        """Calls the backend as Dynamo would, and gives what is called in place of what it returns."""
        calls: list[_Call] = []
        self.book.guarded(lambda: calls.append(self._begin(backend, graph)))()
        try:
            returned = backend(graph, inputs)
        except BaseException as error:
            raised = f"It raised {type(error).__name__}: {_first_line(error)}"
            if calls:
                self.book.guarded(functools.partial(self._say, calls[0], raised))()
            raise
        if not calls:
            return returned
        if not callable(returned):
            wrong = f"It returned {described(returned)}, which cannot be called."
            self.book.guarded(functools.partial(self._say, calls[0], wrong))()
            return returned
        run = backends.callable_of(returned)
        self.book.guarded(lambda: self._returned(calls[0], graph, returned))()
        return self._first_watched(calls[0], run)

    def _begin(self, backend: Any, graph: Any) -> _Call:
        at = self.book.current()
        if at is None:
            raise LookupError("a backend was called outside of a compile")
        inner = backends.innermost(backend)
        operations = sum(1 for node in graph.graph.nodes if node.op.startswith("call_"))
        is_debug = backends.is_for_debugging(backend)
        name, function = backends.name_of(backend), backend_described(inner)
        self._aot_graphs = []
        call = _Call(at[0], at[1], name, function, operations, is_debug, [(graph, text_of(graph))])
        call.facts = [
            f"Backend: {name}, which is {function}",
            f"It was called with a graph of {_count(operations, 'operation')}.",
        ]
        self._calls[call.compile] = call
        call.id = self.book.put_stage(call.compile, stages.REPORT.name, _text(call), call.attempt)
        return call

    def _say(self, call: _Call, fact: str) -> None:
        call.facts.append(fact)
        data = {"name": call.name, "function": call.function, "facts": call.facts}
        self.book.write_stage(call.compile, stages.REPORT.name, call.id, _text(call), data)

    def _returned(self, call: _Call, graph: Any, returned: Any) -> None:
        call.is_itself = is_graph_itself(returned, graph)
        call.is_changed = _is_changed(*call.graphs[0])
        call.graphs += self._aot_graphs
        found = graph_in(returned)
        if found is graph and not call.is_changed:
            self._say(call, f"It returned {described(returned)}, and did not change the graph.")
            return
        changed = " It changed the graph that it was given." if call.is_changed else ""
        self._say(call, f"It returned {described(returned)}.{changed}")
        if found is not None:
            text, data = found.print_readable(print_output=False), self._nodes.describe(found)
            self.book.put_stage(call.compile, stages.RETURNED_GRAPH.name, text, call.attempt, data)
        elif text := text_in(returned):
            self.book.put_stage(call.compile, stages.RETURNED_TEXT.name, text, call.attempt)

    def _first_watched(self, call: _Call, run: Any) -> Any:
        """What runs in place of what the backend returned; its first call is watched."""
        is_first = True

        @functools.wraps(run)
        def called(*args: Any, **kwargs: Any) -> Any:
            nonlocal is_first
            if not is_first:
                return run(*args, **kwargs)
            is_first = False
            with Watch() as watch:
                result = run(*args, **kwargs)
            self.book.guarded(lambda: self._ran(call, watch))()
            return result

        return called

    def _ran(self, call: _Call, watch: Watch) -> None:
        graphs, call.graphs = call.graphs, []
        if not watch.can_see and not call.is_itself:
            self._say(
                call, "What it returned ran. What ran in it is not known: the script has its own profile function."
            )
            return
        ran = next(((graph, before) for graph, before in graphs if ran_itself(watch, graph)), None)
        if ran is None:
            others = len(watch.graphs) + len(watch.interpreted)
            parts = f" {_count(others, 'other graph')} ran in it as Python." if others else ""
            self._say(call, f"What it returned ran, and the graph that it was given did not run as Python.{parts}")
            return
        is_changed = _is_changed(*ran)
        which = "the graph" if ran[0] is graphs[0][0] else "the graph of AOTAutograd"
        how = "as the backend has changed it" if is_changed else "as it was"
        self._say(call, f"What it returned ran: {which} {how}, one PyTorch operation after the other.")
        if not is_changed and not call.is_for_debugging:
            self._find(call, "graph-returned" if call.is_itself else "graph-executed")

    def _find(self, call: _Call, code: str) -> None:
        """One finding for each function and cause, with all its compiles."""
        compile = self.book.compiles.get(call.compile)
        if compile is None:
            return
        cause = (
            f"the backend `{call.name}` returned the graph unchanged"
            if code == "graph-returned"
            else f"what the backend `{call.name}` returned ran the graph unchanged"
        )
        finding = Finding(
            kind=stages.NOT_COMPILED.id,
            code=code,
            severity=stages.NOT_COMPILED.severity,
            message=f"`{compile.function_name}` ran in eager mode: {cause}.",
            explanation="Each PyTorch operation of the graph ran by itself, as without torch.compile.",
            hints=(
                "Look for a warning of the backend in the output: some fall back for devices or dtypes that they do not support.",
                "The stage *What the backend did* says what it returned.",
            ),
            link=None,
            file=compile.file,
            range=function_range(compile),
            count=1,
            compiles=(compile.id,),
        )
        self.book.findings.add(finding)


def _is_changed(graph: Any, before: str) -> bool:
    return text_of(graph) != before


def _text(call: _Call) -> str:
    return "".join(f"{fact}\n" for fact in call.facts)


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).split("\n") if line.strip()), "no message")
