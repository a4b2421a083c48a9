"""A run that is watched: what leaves each compiled graph is measured at every call, until a number is not finite.

Then the calls since the last copy of the parameters are run again, the graph in question node by node, and the finding
says which node made it, of what, and whether eager mode does so, too (`irscope.values.watch`).
"""

from __future__ import annotations

import math
import os
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from irscope.capture.run_book import RunBook
from irscope.findings.kinds import non_finite
from irscope.internals.frames import callers
from irscope.internals.hooks import Hook
from irscope.internals.modes import plain_modes
from irscope.internals.training_steps import step_hooks
from irscope.pipeline_captures.inductor.value_run import ValueRun, fits
from irscope.protocol import CaptureGap
from irscope.protocol.facts import NonFiniteFacts
from irscope.usercode.user_files import is_user_file
from irscope.values.blame.locating import differs
from irscope.values.check.comparing import NOT_DETERMINISTIC, Comparison, CompiledValues, compiled_values, output_names
from irscope.values.run.compiled import CompiledGraph
from irscope.values.run.inputs import WrongInputs
from irscope.values.run.interpreting import NodeFailed
from irscope.values.run.running import CallMoment
from irscope.values.run.statistics import first_line
from irscope.values.run.subgraph_compile import Drawing
from irscope.values.verdict import place_of
from irscope.values.watch.births import Birth, birth_of
from irscope.values.watch.calls import Call, Recorder, outputs_of, set_states
from irscope.values.watch.magnitudes import Magnitudes, magnitudes, measurable
from irscope.vocabulary.records import dataclass

WATCHED = "what leaves the compiled graphs"
"""The text of a capture gap."""


@dataclass
class _Measured:
    """Numbers on their way, and what they say something about."""

    numbers: Magnitudes
    look: Callable[[list[float]], None]


@dataclass
class _Replay:
    """A call of compiled code that was run again."""

    moment: CallMoment
    since: int = 0
    is_same: bool = False
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Origin:
    """Where a number comes from that is not finite, as `NonFiniteFacts` have it."""

    culprit: str
    what: str
    place: tuple[str, int] = ("", 0)
    library: Sequence[Any] | None = None
    node: str = ""
    target: str = ""
    kernel: str = ""
    operand: str = ""
    magnitude: str = ""
    stage: str = ""


class WatchRun(ValueRun):
    """What is done with numbers in a run that is watched; also gets the events of a training (`StepEvents`)."""

    def __init__(self, book: RunBook) -> None:
        super().__init__(book)
        self._recorder: Recorder | None = None
        self._open: deque[_Measured] = deque()
        self._has_ended = self._is_scaled = self._has_optimizer = False
        self._graphs_made = self._calls = 0
        self._rank = book.request.rank or _rank_here()
        self._compares = bool(self._wanted.against)

    def hooks(self) -> list[Hook]:
        """The hooks of a value run, and on the steps of a training."""
        return [*super().hooks(), *step_hooks(self)]

    def finish(self) -> None:
        """Reads what is still on its way, and says so if nothing was seen."""
        self._guarded(self._read, True)
        if self._graphs_made and not self._calls:
            self._book.gap(CaptureGap(WATCHED, "no call of a graph was seen that Inductor compiled in this run"))

    def _begins(self) -> str | None:
        compile = super()._begins()
        self._graphs_made += compile is not None
        return compile

    # --- calls ------------------------------------------------------------------------------------------------------------

    def _called(self, compiled: CompiledGraph, inputs: Any, run: Callable[[Any], Any]) -> Any:
        if self._has_ended or self._book.is_quiet:
            return run(inputs)
        compiled.calls += 1
        self._calls += 1
        if self._recorder is None:
            self._recorder = Recorder(self._wanted.replay_bytes)
        addresses = {each.data_ptr() for each in inputs if measurable(each)}
        calls: list[Call] = []
        self._guarded(lambda: calls.append(self._begin(compiled, run, inputs)))
        moments: list[CallMoment] = []
        if self._compares:
            self._carefully(lambda: moments.append(CallMoment(compiled, inputs)))
        returned = run(inputs)
        if calls:
            self._guarded(self._ended, calls[0], outputs_of(returned), addresses)
        if moments:
            self._carefully(lambda: self._compare_call(moments[0], returned))
            moments[0].forget()
        return returned

    def _begin(self, compiled: CompiledGraph, run: Callable[[Any], Any], inputs: Sequence[Any]) -> Call:
        assert self._recorder is not None
        return self._recorder.begin_call(compiled, run, inputs)

    def _ended(self, call: Call, outputs: list[Any], inputs: set[int]) -> None:
        assert self._recorder is not None
        self._recorder.end_call(call, outputs)
        tensors = [each for each in outputs if measurable(each) and each.data_ptr() not in inputs]
        self._measure(tensors, lambda numbers: self._look_at_call(call, outputs, tensors, numbers))

    def _look_at_call(self, call: Call, outputs: list[Any], tensors: Sequence[Any], numbers: list[float]) -> None:
        if call.compiled.backward and self._is_scaled:
            return  # the scaler looks for infinities, and leaves the step out
        for tensor, number in zip(tensors, numbers, strict=True):
            # A mask may be of -inf, and leave the graph as such.
            is_mask = math.isinf(number) and not call.compiled.backward and tensor.numel() > 1
            if not math.isfinite(number) and (not is_mask or bool((tensor == math.inf).any())):
                self._has_ended = True
                self._carefully(lambda: self._tell_call(call, outputs))
                return

    # --- steps ------------------------------------------------------------------------------------------------------------

    def backward(self, roots: tuple[Any, ...]) -> None:
        """The loss is known."""
        if self._is_on() and (losses := [root for root in roots if measurable(root)]):
            self._guarded(self._measure, losses, lambda numbers: self._look_at_loss(losses, numbers))

    def scaled(self) -> None:
        """Gradients may overflow."""
        self._is_scaled = True

    def before_step(self, optimizer: Any, closure: Any) -> None:
        """Keep the gradients."""
        if self._is_on() and self._recorder is not None:
            self._has_optimizer = True
            self._guarded(self._recorder.before_step, optimizer, closure)

    def after_step(self, optimizer: Any) -> None:
        """Look at the parameters."""
        if not self._is_on() or self._recorder is None:
            return
        step = self._recorder.step
        tensors = [each for group in optimizer.param_groups for each in group["params"] if measurable(each)]
        self._guarded(self._measure, tensors, lambda numbers: self._look_at_parameters(step, tensors, numbers))
        self._guarded(self._recorder.after_step)

    def _is_on(self) -> bool:
        return not self._has_ended and not self._book.is_quiet

    def _look_at_loss(self, losses: Sequence[Any], numbers: list[float]) -> None:
        for loss, number in zip(losses, numbers, strict=True):
            if not math.isfinite(number):
                made = getattr(getattr(loss, "grad_fn", None), "name", lambda: "")()
                by = f" ({made.removesuffix('0').removesuffix('Backward')} made it)" if made else ""
                self._tell_place("loss", f"the loss is {'NaN' if math.isnan(number) else 'infinite'}{by}")
                return

    def _look_at_parameters(self, step: int, tensors: Sequence[Any], numbers: list[float]) -> None:
        for tensor, number in zip(tensors, numbers, strict=True):
            if not math.isfinite(number):
                shape = " × ".join(map(str, tensor.shape)) or "one number"
                self._tell_place("optimizer", f"the optimizer made a parameter ({shape}) not finite", step)
                return

    def _tell_place(self, culprit: str, what: str, step: int = 0) -> None:
        """A finding at the line that is running."""
        self._has_ended = True
        frames = ((frame.f_code.co_filename, frame.f_lineno) for frame in callers())
        file, line = next((each for each in frames if is_user_file(each[0])), ("", 0))
        number = step or (self._recorder.step if self._recorder is not None else 1)
        facts = NonFiniteFacts(step=number, rank=self._rank, culprit=culprit)
        if file:
            self._book.publish(non_finite.finding_of(facts, what, "", file, line, ()))

    # --- numbers ----------------------------------------------------------------------------------------------------------

    def _measure(self, tensors: Sequence[Any], look: Callable[[list[float]], None]) -> None:
        with plain_modes():
            numbers = magnitudes(tensors)
        if numbers is not None:
            self._open.append(_Measured(numbers, look))
        self._read()

    def _read(self, waits: bool = False) -> None:
        while self._open and not self._has_ended and (waits or self._open[0].numbers.is_there()):
            measured = self._open.popleft()
            measured.look(measured.numbers.read())

    def _guarded(self, work: Callable[..., None], *arguments: Any) -> None:
        """Does something of ours beside a call; where it fails the run is not watched any more."""
        try:
            with plain_modes():
                work(*arguments)
        except Exception as error:  # noqa: BLE001
            self._has_ended = True
            self._book.gap(CaptureGap(WATCHED, f"{type(error).__name__}: {first_line(error)}"))

    # --- what happened ----------------------------------------------------------------------------------------------------

    def _tell_call(self, call: Call, outputs: list[Any]) -> None:
        torch: Any = sys.modules["torch"]
        with torch.no_grad():
            replay = self._replay(call)
            found = compiled_values(replay.moment, outputs)
            birth = birth_of(replay.moment, found.values)
            before = self._birth_before(replay)
            verdict = self._verdict(replay.moment, found)
        replay.notes += [note for note in found.notes if note == NOT_DETERMINISTIC]
        wrong = verdict.found
        if wrong is not None and birth is not None and (wrong["how"] not in ("pass", "step") or before is not None):
            wrong = None  # the graph that autograd gave to Inductor makes such numbers, too
        if wrong is not None:
            self._tell_verdict(call.compiled, verdict)
        told = (
            _born(birth, replay.moment, found.kernel, self._input_names(call.compiled))
            if wrong is None
            else _blamed(wrong)
        )
        self._tell_origin(call, replay, told)

    def _birth_before(self, replay: _Replay) -> Birth | None:
        """The birth in the graph as it came to Inductor; None if that is not known, or makes finite numbers."""
        compiled = replay.moment.compiled
        stages = self._of(compiled.compile, compiled.backward).stages
        names = ("forward-graph", "inference-graph", "backward-graph")
        kept = next((stages[name] for name in names if name in stages and fits(stages[name], compiled)), None)
        return None if kept is None else birth_of(replay.moment, {}, kept)

    def _replay(self, call: Call) -> _Replay:
        """The call as it was.  Raises LookupError if it cannot be run again."""
        recorder = self._recorder
        assert recorder is not None
        if recorder.why_not:
            raise LookupError(f"step {call.step} cannot be run again: {recorder.why_not}")
        replays: list[_Replay] = []

        def use(inputs: list[Any]) -> None:
            set_states(call.states)
            replays.append(_Replay(CallMoment(call.compiled, inputs)))

        is_now = call.step == recorder.step
        same = recorder.again(call, use)
        if replays and (same or not is_now):
            replays[0].since, replays[0].is_same = recorder.first_of_window(), bool(same) and is_now
            return replays[0]
        if not is_now:
            raise LookupError(f"step {call.step} is not kept any more")
        why = "What the script does between the steps is not all known, or it is not deterministic: parameters of earlier steps did not become the same again."  # fmt: skip
        replays.clear()
        use(recorder.in_step(call))
        replays[0].notes += [why] if same is False else []
        return replays[0]

    def _tell_origin(self, call: Call, replay: _Replay, told: _Origin) -> None:
        compiled = call.compiled
        stage = told.stage or f"{compiled.compile}/post-grad-graph{'-backward' if compiled.backward else ''}"
        step = call.step if self._has_optimizer else compiled.calls
        file, line = told.place if told.place[0] else replay.moment.called_from
        library_file, library_line = told.library or ("", 0)
        facts = NonFiniteFacts(
            step=step, rank=self._rank, culprit=told.culprit, stage=stage, node=told.node, target=told.target,
            kernel=told.kernel, operand=told.operand, magnitude=told.magnitude, library_file=library_file,
            library_line=library_line, replayed_from=replay.since, is_same_bits=replay.is_same,
        )  # fmt: skip
        if file:
            finding = non_finite.finding_of(facts, told.what, compiled.compile, file, line, tuple(replay.notes))
            self._afterwards(self._book.publish, finding)

    def _input_names(self, compiled: CompiledGraph) -> dict[str, str]:
        try:
            named = self._named(compiled)
        except WrongInputs:
            return {}
        return dict(zip(compiled.graph.placeholders, (each.names[0] for each in named), strict=False))

    # --- drift ------------------------------------------------------------------------------------------------------------

    def _compare_call(self, moment: CallMoment, returned: Any) -> None:
        """Compares the results of a call, and looks closer at the first that differs."""
        compiled, to_eager = moment.compiled, self._wanted.against == "eager"
        kept, found = compiled.graph, _results_of(moment, returned)
        drawing = Drawing(compiled.config)
        try:
            compared = Comparison(kept, found, drawing, whole=False, to_eager=to_eager).run(moment.inputs)
        except NodeFailed:
            return
        drifted = next((each for each in compared if differs(each)), None)
        if drifted is None and compiled.calls > 1:  # at its first call, passes are checked with the graph
            return
        found = compiled_values(moment, returned)
        verdict = self._verdict(moment, found)
        if verdict.found is None and drifted is None:
            return
        self._compares = False
        step = compiled.calls
        if self._has_optimizer and self._recorder is not None:
            step = self._recorder.step
        at = f"Step {step}{f', rank {self._rank}' if self._rank else ''}: "
        if verdict.found is not None:
            verdict.found["message"] = at + verdict.found["message"]
            self._tell_verdict(compiled, verdict)
            return
        if drifted is None or (local := drifted.local) is None:
            return
        file, line, inner = place_of(drifted.node, moment)
        message = (
            f"{at}{drifted.node.name} is off by {local.compiled:.3g} from {self._wanted.against}, more than its dtype explains "
            "in the whole graph; no kernel alone is to blame."
        )
        told = {
            "how": "code-generation", "message": message, "file": file, "line": line, "kernel": drifted.kernel,
            "local": local.data(), "inner": inner,
        }  # fmt: skip
        self._afterwards(self._tell, compiled.compile, told)


def _born(birth: Birth | None, moment: CallMoment, kernels: Mapping[str, str], names: Mapping[str, str]) -> _Origin:
    """The origin, if no step of the compiler is known to be wrong."""
    if birth is None:
        return _Origin("compiler", "compiled code made NaN or infinity of finite numbers")
    node, operand, extent = birth.node, birth.operand, birth.extent
    is_input = node.op == "placeholder"
    file, line, library = place_of(next(iter(node.users), None) if is_input else node, moment)
    what = f"{node.target} made {birth.became}"
    if is_input:
        what = f"the input {names.get(node.name, node.name)} has {birth.became}"
    named = ""
    if operand is not None:
        named = names.get(operand.name, operand.name)
        what += f" of {named}, which is from {extent.least:.4g} to {extent.greatest:.4g}"
    return _Origin(
        "data" if is_input else "model", what, (file, line), library, node.name, str(node.target),
        _kernel(node, kernels), named, f"{extent.magnitude:.4g}" if named else "",
    )  # fmt: skip


def _blamed(wrong: Mapping[str, Any]) -> _Origin:
    """The origin, if a pass, a lowering or a kernel is wrong (`irscope.values.verdict`)."""
    return _Origin(
        "compiler", wrong["message"].rstrip("."), (wrong["file"], wrong["line"]), wrong["inner"], wrong["node"],
        wrong["target"], wrong["kernel"], stage=wrong["stage"],
    )  # fmt: skip


def _kernel(node: Any, kernels: Any) -> str:
    """The kernel that a node is in: the one that writes it, or, if it was fused away, the first that writes what uses it."""
    open_, seen = deque([node]), set[Any]()
    while open_:
        each = open_.popleft()
        if name := kernels.get(each.name, ""):
            return str(name)
        seen.add(each)
        open_ += [user for user in each.users if user not in seen]
    return ""


def _rank_here() -> int:
    """The rank that a launcher has given this process; 0 without one."""
    rank = os.environ.get("RANK", "")
    return int(rank) if rank.isdecimal() and len(rank) < 9 else 0


def _results_of(moment: CallMoment, returned: Any) -> CompiledValues:
    """The values of a call that are compared: those that it returned, and all of its buffers where these are not enough."""
    kept = moment.compiled.graph
    if kept.is_random or kept.writes_between:
        return compiled_values(moment, returned)
    outputs = outputs_of(returned)
    names = zip(output_names(kept), outputs, strict=False)
    return CompiledValues({name: value for name, value in names if name and value is not None}, outputs=outputs)
