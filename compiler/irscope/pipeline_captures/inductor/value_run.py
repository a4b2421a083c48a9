"""A value run: at the chosen call of each compiled graph its inputs are copied, and the graph is run on them.

The work is done right after the call of the compiled code, so that a script that is stopped or dies later has left its
values, and no copy is held longer than that.  A value run itself is not captured (`RunBook.quietly`).
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from irscope.capture.run_book import RunBook
from irscope.findings.kinds import divergence
from irscope.internals.dynamo_frames import arguments_traced
from irscope.internals.hooks import Hook
from irscope.internals.modes import plain_modes, same_counters
from irscope.pipeline_captures.inductor.passes import PassRun
from irscope.pipeline_captures.inductor.values import WHAT, CallWatcher
from irscope.pipelines.inductor import stages as kinds
from irscope.pipelines.registry import position, stage_kind
from irscope.protocol import GIVEN, CaptureGap, StageRef, ValuesRequest
from irscope.store.value_file import ValueWriter, folder_of
from irscope.values.blame.blaming import Version
from irscope.values.check.comparing import CompiledValues, compiled_values
from irscope.values.kernel.eager import EagerGraph
from irscope.values.run.compiled import CompiledGraph
from irscope.values.run.inputs import GivenInputs, Input, WrongInputs, inputs_of
from irscope.values.run.interpreting import KeptGraph
from irscope.values.run.running import CallMoment
from irscope.values.run.statistics import described
from irscope.values.run.text import divergence_text, values_text
from irscope.values.run.value_rows import known_values, node_values, target_values
from irscope.values.verdict import Verdict, judged
from irscope.vocabulary.records import dataclass

if TYPE_CHECKING:
    from irscope.pipeline_captures.inductor.targets import Targets

_MakeValues = Callable[[ValueWriter], tuple[list[dict[str, Any]], list[str]]]
VALUES, DIVERGENCE = kinds.VALUES.name, kinds.DIVERGENCE.name


@dataclass
class _Graphs:
    """The graphs of one compile that Inductor compiles as one: its forward or its backward."""

    stages: dict[str, KeptGraph] = field(default_factory=dict)
    versions: list[tuple[str, PassRun | None, KeptGraph]] = field(default_factory=list)
    arguments: tuple[str, ...] = ()
    """Names of the arguments of the function that was compiled; looked up where inputs are given."""
    untold: str = ""
    """Why they are not known."""


class ValueRun:
    """What is done with numbers in a value run."""

    def __init__(self, book: RunBook, targets: Targets | None = None) -> None:
        request = book.request
        assert request.values is not None
        self._book, self._targets = book, targets
        self._forwards: dict[Any, EagerGraph] = {}  # (compile, target) → of what its backward takes values
        self._wanted: ValuesRequest = request.values
        self._folder = folder_of(request.store, request.run)
        self._given = GivenInputs(self._wanted.inputs) if self._wanted.inputs else None
        self._graphs: dict[tuple[str, bool], _Graphs] = {}
        self._left = self._wanted.keep_bytes
        self._files = 0
        self._local = threading.local()
        self._watcher = CallWatcher(self._begins, self._called, book.guarded)

    def hooks(self) -> list[Hook]:
        """The hooks through which it sees compilations and calls."""
        return self._watcher.hooks()

    def finish(self) -> None:
        """The capture ends."""

    # --- while a graph is compiled --------------------------------------------------------------------------------------

    def graph(self, compile: str, stage: str, backward: bool, module: Any) -> None:
        """A stage's graph module, while it is alive."""
        if self._is_wanted(compile):
            backward = backward or stage == "backward-graph"
            graphs = self._of(compile, backward)
            graphs.stages[stage] = KeptGraph(module)
            if stage == "dynamo-graph" and (self._given is not None or self._wanted.watch):
                if (arguments := arguments_traced()) is None:
                    graphs.untold = "the arguments cannot be matched with the graph's inputs"
                graphs.arguments = arguments or ()

    def version(self, stage: str, run: PassRun | None, module: Any) -> None:
        """A graph module before the passes of a stage, and after each that changed it."""
        compile = self._book.current_compile(VALUES)
        if compile is None or not self._is_wanted(compile) or not self._wanted.divergence:
            return
        names = {node.name for node in module.graph.nodes}
        backward = stage == "post-grad-graph" and any(name.startswith("tangents_") for name in names)
        self._of(compile, backward).versions.append((stage, run, KeptGraph(module)))

    def _begins(self) -> str | None:
        if self._book.is_quiet:
            return None
        compile = self._book.current_compile(VALUES)
        return compile if compile is not None and self._is_wanted(compile) else None

    def _is_wanted(self, compile: str) -> bool:
        return self._wanted.compile in ("", compile)

    def _of(self, compile: str, backward: bool) -> _Graphs:
        return self._graphs.setdefault((compile, backward), _Graphs())

    # --- at a call --------------------------------------------------------------------------------------------------------

    def _called(self, compiled: CompiledGraph, inputs: Any, run: Callable[[Any], Any]) -> Any:
        if self._book.is_quiet:
            return run(inputs)
        compiled.calls += 1
        if compiled.calls != self._wanted.call:
            return run(inputs)
        if self._targets is not None:
            self._targets.wait()
        moments: list[CallMoment] = []
        self._carefully(lambda: moments.append(CallMoment(compiled, inputs, self._put_in(compiled))))
        outputs = run(inputs)
        if moments:
            moment = moments[0]
            self._carefully(lambda: self._look(moment, outputs))
            moment.forget()
        return outputs

    def _put_in(self, compiled: CompiledGraph) -> Callable[[Sequence[Any]], list[Any]] | None:
        """Puts the inputs that the user gives into those of a call; None if none are given."""
        given = self._given
        if given is None:
            return None
        named = self._named(compiled)
        return lambda values: given.put_into(named, values, compiled.backward)

    def _named(self, compiled: CompiledGraph) -> list[Input]:
        """The user's names of a compiled graph's inputs.  Raises WrongInputs if they are not known."""
        forward = self._of(compiled.compile, False)
        if forward.untold:
            raise WrongInputs(forward.untold)
        return inputs_of(compiled.graph, forward.stages.get("dynamo-graph"), forward.arguments, compiled.backward)

    def _carefully(self, work: Callable[[], None]) -> None:
        """Does something of ours in the middle of the script: an error is a gap, and all state is restored."""
        self._local.afterwards = []
        try:
            with self._book.quietly(), _as_it_was():
                work()
        except WrongInputs as error:
            self._afterwards(self._book.gap, CaptureGap(GIVEN, f"{self._wanted.inputs}: {error}"))
        except Exception as error:  # noqa: BLE001
            self._afterwards(self._book.gap, CaptureGap(WHAT, f"{type(error).__name__}: {str(error)[:500]}"))
        for what, arguments in self._local.afterwards:
            self._book.guarded(what)(*arguments)

    def _afterwards(self, what: Callable[..., None], *arguments: Any) -> None:
        """Has something told when the work is done: the store and the pipe are one thread's at a time."""
        self._local.afterwards.append((what, arguments))

    def _look(self, moment: CallMoment, outputs: Any) -> None:
        compiled = moment.compiled
        stages = self._stages_of(compiled) if self._wanted.statistics else []
        found = CompiledValues()
        graph = "post-grad-graph" if self._wanted.stage in ("", "all") else self._wanted.stage
        graph += "-backward" * (compiled.backward and graph != "backward-graph")
        texts = self._graphs_of_targets(compiled.compile, graph)
        run = [*(self._kept(compiled, stage) for stage in stages), *(compiled.graph for _ in texts)]
        if self._wanted.divergence or any(kept.is_random for kept in run):
            found = compiled_values(moment, outputs)
        for stage in stages:
            self._keep_values(moment, stage, found)
        for target, text in texts.items():
            self._keep_target_s(moment, target, graph, text, found)
        if self._wanted.divergence:
            self._compare(moment, found)

    def _compare(self, moment: CallMoment, found: CompiledValues) -> None:
        self._tell_verdict(moment.compiled, self._verdict(moment, found))

    def _verdict(self, moment: CallMoment, found: CompiledValues) -> Verdict:
        compiled = moment.compiled
        graphs = self._of(compiled.compile, compiled.backward)
        suffix = "-backward" if compiled.backward else ""
        # A joint graph's passes run over forward and backward at once; they are checked with the forward.
        versions = [
            Version(stage, run.name if run else "", kept, frozenset({*run.added, *run.changed} if run else ()))
            for stage, run, kept in graphs.versions
        ]
        return judged(moment, found, versions, f"{compiled.compile}/post-grad-graph{suffix}")

    def _tell_verdict(self, compiled: CompiledGraph, verdict: Verdict) -> None:
        suffix = "-backward" if compiled.backward else ""
        inputs = self._keep_inputs(verdict.reproducer.inputs) if verdict.reproducer is not None else ""
        data = verdict.data(f"{compiled.compile}/post-grad-graph{suffix}", compiled.calls, inputs)
        if verdict.location is not None and verdict.location.tensors is not None:
            data["found"]["tensors"] = self._keep_tensors(verdict.location.tensors)
        text = divergence_text(data)
        id = f"{compiled.compile}/{DIVERGENCE}{suffix}"
        self._put(compiled, DIVERGENCE, id, text, data)
        if verdict.found is not None:
            self._afterwards(self._tell, compiled.compile, verdict.found)

    def _keep_tensors(self, tensors: tuple[Any, Any, Any]) -> dict[str, Any]:
        """Writes what compiled code, eager mode and float64 have at the node that differs; as `verdict` tells."""
        writer = ValueWriter(os.path.join(self._folder, f"{self._files:04}.bin"), self._left)
        self._files += 1
        try:
            names = ("compiled", "eager", "float64")
            values = {name: described(tensor, writer) for name, tensor in zip(names, tensors, strict=True)}
        finally:
            writer.close()
        self._left = max(0, self._left - writer.written)
        return {"file": writer.name, **values}

    def _keep_inputs(self, inputs: list[Any] | None) -> str:
        """Writes the tensors that a reproducer loads; returns the file's name, or an empty string."""
        if inputs is None:
            return ""
        name = f"{self._files:04}.pt"
        self._files += 1
        os.makedirs(self._folder, exist_ok=True)
        sys.modules["torch"].save(inputs, os.path.join(self._folder, name))
        return name

    def _tell(self, compile: str, found: dict[str, Any]) -> None:
        if (finding := divergence.finding_of(compile, found)) is not None:
            self._book.publish(finding)

    def _stages_of(self, compiled: CompiledGraph) -> list[str]:
        stages = self._of(compiled.compile, compiled.backward).stages
        if self._wanted.stage == "all":
            return [name for name, kept in stages.items() if fits(kept, compiled)]
        if wanted := self._wanted.stage:
            return [wanted] if wanted in stages and fits(stages[wanted], compiled) else []
        first = next((name for name in ("forward-graph", "inference-graph", "backward-graph") if name in stages), None)
        return [first] if first is not None and fits(stages[first], compiled) else []

    def _graphs_of_targets(self, compile: str, graph: str) -> dict[str, str]:
        return self._targets.graphs(compile, graph) if self._targets is not None else {}

    def _kept(self, compiled: CompiledGraph, stage: str) -> KeptGraph:
        return self._of(compiled.compile, compiled.backward).stages[stage]

    def _keep_values(self, moment: CallMoment, stage: str, found: CompiledValues) -> None:
        compiled = moment.compiled
        kept = self._kept(compiled, stage)
        of = f"{compiled.compile}/{stage}{'-backward' if compiled.backward and stage != 'backward-graph' else ''}"
        self._keep(compiled, of, lambda writer: node_values(moment, kept, writer, found.values))

    def _keep_target_s(self, moment: CallMoment, target: str, graph: str, text: str, found: CompiledValues) -> None:
        """Keeps the values of the nodes of a target's graph on the inputs of a call, computed on the CPU."""
        compiled = moment.compiled
        at = compiled.compile, target
        eager = EagerGraph(text, known_values(moment, found.values), forward=self._forwards.pop(at, None))
        if target in self._graphs_of_targets(compiled.compile, f"{graph}-backward"):
            self._forwards[at] = eager
        self._keep(compiled, f"{'/'.join(at)}/{graph}", lambda writer: target_values(eager, writer), target)

    def _keep(self, compiled: CompiledGraph, of: str, values: _MakeValues, target: str = "") -> None:
        """Writes the values of the nodes of a stage."""
        writer = ValueWriter(os.path.join(self._folder, f"{self._files:04}.bin"), self._left)
        self._files += 1
        try:
            nodes, notes = values(writer)
        finally:
            writer.close()
        self._left = max(0, self._left - writer.written)
        data = {"stage": of, "call": compiled.calls, "file": writer.name, "nodes": nodes, "notes": notes}
        compile, _, graph = of.rpartition("/")
        self._put(compiled, VALUES, f"{compile}/{VALUES}/{graph}", values_text(data), data, target)

    def _put(self, compiled: CompiledGraph, name: str, id: str, text: str, data: object, target: str = "") -> None:
        compile = f"{compiled.compile}/{target}" if target else compiled.compile
        ref = StageRef(id, name, stage_kind(name).language, len(text), target=target)
        self._afterwards(self._book.write_version, compile, ref, text, position(name, compiled.backward), data)


def fits(kept: KeptGraph, compiled: CompiledGraph) -> bool:
    """Whether a stage's graph takes the inputs that the compiled graph takes."""
    return compiled.graph is not None and kept.placeholders == compiled.graph.placeholders


@contextlib.contextmanager
def _as_it_was() -> Iterator[None]:
    """Random generators and counters are afterwards what they were before.

    What the script is in (autocast, inference mode, a mode that counts or changes operations) does not hold inside.
    """
    torch: Any = sys.modules["torch"]
    devices = (
        list(range(torch.cuda.device_count())) if torch.cuda.is_available() and torch.cuda.is_initialized() else []
    )
    with same_counters(), torch.random.fork_rng(devices=devices), plain_modes():
        yield
