"""The report of a run, and its parts; it is also the JSON of ``irscope run --json``.

Lines are 1-based, columns are 0-based indices into the line as a Python string, ends are exclusive.
"""

from __future__ import annotations

import dataclasses
import enum
from collections import Counter
from collections.abc import Iterable, Sequence

from irscope.protocol.facts import FindingFacts, RecompilationFacts
from irscope.protocol.fixes import Fix
from irscope.protocol.jobs import BucketSplit, Collective, CollectiveOverlap, CollectiveWait, Piece, RuntimeCollective
from irscope.protocol.places import Range
from irscope.protocol.symbols import SymbolFacts
from irscope.vocabulary.function_names import function_title, plain_name, resumed_line, resumed_title
from irscope.vocabulary.lanes import DEFAULT_PIPELINE, Lane
from irscope.vocabulary.limits import Limit
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.severities import Severity
from irscope.vocabulary.stages import GUARDS_LANGUAGE

SCHEMA = 2
"""Version of the JSON of `Report`; raised when a field changes its meaning or goes away."""


class OutcomeKind(str, enum.Enum):
    """How a run ended."""

    COMPLETED = "completed"
    """The script ran to its end, or ended its process with exit code 0."""
    SCRIPT_ERROR = "script-error"
    """The script failed by itself: an exception, a syntax error, a non-zero ``sys.exit`` or ``os._exit``."""
    BUDGET = "budget"
    """irscope stopped it because a limit was reached."""
    CANCELLED = "cancelled"
    """The user or the client stopped it."""
    CRASHED = "crashed"
    """A signal ended the process: a fault, an abort, out of memory."""
    ENVIRONMENT_ERROR = "environment-error"
    """It could not start: no such file, no torch, torch too old."""


class CompileOutcome(str, enum.Enum):
    """What one compile came to."""

    COMPILED = "compiled"
    GRAPH_BREAK = "graph-break"
    """A graph was cut; what came before the break was compiled."""
    SKIPPED = "skipped"
    """The frame runs as plain Python."""
    ERROR = "error"
    RUNNING = "running"
    """Not ended yet, or the process died in it."""


class RelatedRole(str, enum.Enum):
    """What a related place is to a finding."""

    CALLER = "caller"
    """A call on the way to the finding."""
    CAUSE = "cause"
    """The line of a library in which the cause lies."""
    TRIGGER = "trigger"
    """The call whose arguments did not fit."""


@dataclass(frozen=True)
class Related:
    """Another place that has to do with a finding: a caller, a library line, the call that recompiled."""

    file: str
    range: Range
    message: str
    role: RelatedRole | None = None
    """None: any other place, or a run of an older version of irscope."""


@dataclass(frozen=True)
class StackFrame:
    """A frame of Python's stack when the script failed."""

    file: str
    line: int
    function: str
    range: Range | None = None
    """The expression that it was at, of a file of the user's; None if only the line is known."""
    code: str = ""
    """The text of the line, of a graph that PyTorch executes as Python."""


@dataclass(frozen=True)
class HeldTensor:
    """Memory that a tensor holds when there is not enough: its bytes, what it is for, its name, and the file of the frame
    whose variable it is; empty if it is not one of a frame."""

    bytes: int
    kind: str
    name: str
    file: str = ""


@dataclass(frozen=True)
class OutOfMemory:
    """There was not enough memory for an allocation.

    Args:
        asked: Bytes that were to be allocated; None if PyTorch does not say it.
        is_device: Whether it was the memory of a GPU.
        held: The tensors that held most, the largest first.
        held_bytes: All that is known to be held.
    """

    asked: int | None
    is_device: bool
    held: tuple[HeldTensor, ...]
    held_bytes: int


@dataclass(frozen=True)
class Raised:
    """What ended a script: an exception, or a signal with its name as the type."""

    type: str
    text: str
    stack: tuple[StackFrame, ...]
    """The outermost frame first."""
    is_signal: bool = False
    memory: OutOfMemory | None = None


@dataclass(frozen=True)
class Cost:
    """What a finding brought about.

    Args:
        seconds: Of compile time.
        graphs: Graphs that would not be there without it.
        step_seconds: Seconds of each step, where a profile of the run measured them; else 0.
    """

    seconds: float
    graphs: int
    step_seconds: float = 0.0


@dataclass(frozen=True)
class Finding:
    """Something that the user should know at a source range; one per range and cause."""

    kind: str
    """The id of a `FindingKind`: ``graph-break``, ``recompilation``, ``compile-error``, …"""
    code: str
    """What people filter by: PyTorch's ``GB0059`` where there is one, else irscope's own."""
    severity: Severity
    message: str
    """One sentence or two, in the user's words."""
    explanation: str
    hints: tuple[str, ...]
    link: str | None
    file: str
    range: Range
    count: int
    compiles: tuple[str, ...]
    related: tuple[Related, ...] = ()
    cost: Cost = Cost(0.0, 0)
    fixes: tuple[Fix, ...] = ()
    follows: Related | None = None
    """The finding that it is a consequence of."""
    ranks: tuple[int, ...] = ()
    """The ranks that have it, of a run of several ranks."""
    facts: FindingFacts | None = None
    """What is known about it, of the kinds that declare such facts; None in runs of older versions of irscope."""
    symbols: tuple[SymbolFacts, ...] = ()
    """The symbolic sizes that its words name, as far as its compiles know them."""
    targets: tuple[str, ...] = ()
    """The devices that it was predicted for; none for what the run itself has."""

    @property
    def words(self) -> str:
        """Its message and its explanation."""
        return f"{self.message}\n{self.explanation}"

    @property
    def cause(self) -> tuple[str, str, str, str, Range]:
        """Two reports with the same cause are one finding."""
        state = self.facts.state if isinstance(self.facts, RecompilationFacts) else ""
        return (self.kind, self.code, state, self.file, self.range)


def causes_only(findings: Sequence[Finding]) -> list[Finding]:
    """The findings without those that another one of them mentions."""
    known = {(finding.file, finding.range) for finding in findings}
    return [f for f in findings if f.follows is None or (f.follows.file, f.follows.range) not in known]


@dataclass(frozen=True)
class StageRef:
    """A stage without its text.  ``id`` is unique in the run: ``0/0/forward-graph``, ``0/0/kernel/cpp_fused_relu_0``."""

    id: str
    name: str
    language: str
    """The editor's language id of the text: ``python``, ``cpp``, ``python-bytecode``, …"""
    bytes: int
    passed: str = ""
    """The pass that made this version of the stage (``0/0/post-grad-graph/03-remove_noop_ops``); empty: no version."""
    seconds: float = 0.0
    """What the pass took."""
    nodes: int | None = None
    """Operations of a graph, its inputs and output among them; nodes of Inductor's schedule; None for other stages
    and in the fast lane."""
    target: str = ""
    """The device that it is a prediction for (``h100``); empty for what the run itself compiled."""


@dataclass(frozen=True)
class Compile:
    """One compilation, named as PyTorch names it (``frame/recompile``)."""

    id: str
    function: str
    file: str
    line: int
    outcome: CompileOutcome
    restarts: int
    graph_ops: int
    seconds: float
    stages: tuple[StageRef, ...] = ()
    reasons: tuple[str, ...] = ()
    """Why it was compiled although there were compiles of this function already: PyTorch's own words, the guard of
    the newest of them first."""
    qualified: str = ""
    """The function with the classes and functions around it: ``Block.forward``, also for what follows a graph break
    in it.  Empty in runs of older versions of irscope."""
    target: str = ""
    """For a prediction: the device for which it was compiled."""
    program: str = ""
    """What the script passed to ``torch.compile``, if it is that which is compiled: the class of a module, or a function
    without its decorators.  Empty for what a graph break leaves, and for what other code calls."""
    callers: tuple[Origin, ...] = ()
    """The lines that called it, the lines that called these, and the line that called ``torch.compile``: of the user's
    files and of libraries but torch."""
    backward_callers: tuple[Origin, ...] = ()
    """The same of its backward."""
    module_class: str = ""
    """The class of the ``nn.Module`` whose method it is, or of the one whose method called it when a graph break leaves a
    function alone; empty outside of modules, and in runs of older versions of irscope."""
    resumed: Resumed | None = None
    """What goes on first after a graph break, where that is not ``function``: with
    ``torch._dynamo.config.nested_graph_breaks`` a called function, and its callers go on in the same compile."""

    @property
    def function_name(self) -> str:
        """The function's name as the user knows it: ``Block.forward``."""
        return self.qualified or plain_name(self.function)

    @property
    def title(self) -> str:
        """What was compiled, in words: ``Block``, ``step``, or ``Block.forward, after line 94``."""
        if self.resumed is not None:
            return resumed_title(self.resumed.function, self.resumed.line)
        return self.program or function_title(self.function, self.qualified)

    @property
    def after(self) -> Origin | None:
        """The line of the graph break that it goes on after; None for what begins at the head of its function."""
        if self.resumed is not None:
            return Origin(self.resumed.file, self.resumed.line)
        line = resumed_line(self.function)
        return None if line is None else Origin(self.file, line)


@dataclasses.dataclass(frozen=True, order=True)
class Origin:
    """A line of the user's files that something came from."""

    file: str
    line: int


@dataclass(frozen=True)
class Resumed:
    """A function, with its classes, that goes on after a graph break in this line."""

    function: str
    file: str
    line: int


@dataclass(frozen=True)
class FileLines:
    """Lines of one file, 1-based, in their order."""

    file: str
    lines: tuple[int, ...]


LIBRARY = "extern"
"""The language of a kernel that is a call into a library."""


@dataclass(frozen=True)
class Kernel:
    """A generated function (or a library kernel that the generated code calls)."""

    name: str
    language: str
    """``cpp``, ``triton``, … or ``extern`` for a call into a library, which has no text of its own."""
    compile: str
    stage: str
    """The stage that holds its source; for an extern kernel the output code that calls it."""
    origins: tuple[Origin, ...]
    target: str = ""
    """For a prediction: the device for which it was generated."""
    innermost: Origin | None = None
    """The line nearest to what it computes, of the user's or of a library but torch; of several that of the operation that
    is computed last.  This and what follows is known at the end of a run."""
    module: str = ""
    """The path of the ``nn.Module`` that most of what it computes is in, from the module that was compiled: ``layers.0.mlp``.
    Of a library function that is called in several the one around them."""
    module_class: str = ""
    """The class of that module; with an empty path that of the compiled module itself, or of the one that called the
    compiled function.  Empty for what is outside of modules: only what was compiled is around that."""
    lines: tuple[FileLines, ...] = ()
    """All lines that led to what it computes, but those of torch: from the user's call down to the innermost."""
    calls: int = 1
    """How often the code calls it, if it is an extern kernel."""
    checked: str = ""
    """What `irscope kernel` said of it in a few words; empty if it was not checked."""

    @property
    def is_generated(self) -> bool:
        """Whether it counts as a kernel.  Numbers of kernels are of these, one for each compile that has it; library
        calls are counted by themselves."""
        return self.language != LIBRARY


def library_calls(kernels: Iterable[Kernel]) -> Counter[str]:
    """By compile: how many calls into libraries its code has."""
    found: Counter[str] = Counter()
    for kernel in kernels:
        found[kernel.compile] += 0 if kernel.is_generated else kernel.calls
    return +found


@dataclass(frozen=True)
class CaptureGap:
    """Something that could not be captured, and why."""

    what: str
    why: str


FULL_RUN = "what a full run finds"
"""The subject of a gap that is about the lane, not about the capture: the report has it as `Report.may_differ`."""


PREDICTED = "A prediction, not tuned: what only the device itself can time is open."
"""What a list of predictions says."""


@dataclass(frozen=True)
class Outcome:
    """How a run ended, and after how many seconds."""

    kind: OutcomeKind
    exit_code: int | None
    """What the script's process ended with; None if it never started or a signal ended it."""
    message: str
    seconds: float
    limit: Limit | None = None
    """Which limit it was, of a run that irscope stopped for one."""
    place: Origin | None = None
    """The line that the message names."""

    @property
    def without_place(self) -> str:
        """The message without that line at its end."""
        where = f" ({self.place.file}:{self.place.line})" if self.place is not None else ""
        return self.message.rstrip(" .").removesuffix(where).rstrip(" .")

    @property
    def is_whole(self) -> bool:
        """Whether what a run did not find is not there: it was not cut short by a failure or by the user."""
        return self.kind in (OutcomeKind.COMPLETED, OutcomeKind.BUDGET)


@dataclass(frozen=True)
class RankReport:
    """What one rank of a job compiled.  Its own run has the rest."""

    rank: int
    run: str
    outcome: Outcome
    compiles: int
    kernels: int
    """Generated ones."""
    collectives: tuple[Collective, ...] = ()
    memory: int | None = None
    """Bytes that the largest of its programs holds at its peak, inputs included; None without a memory plan."""
    alike: tuple[int, ...] = ()
    """For an opened trace: other ranks that compiled the same, or the same but for numbers, and have no run of their
    own."""
    overlaps: tuple[CollectiveOverlap, ...] = ()
    """What it computes while each collective runs, in the order of the code."""
    buckets: tuple[BucketSplit, ...] = ()
    """The buckets of DDP, in the order in which they are reduced."""
    runtime: tuple[RuntimeCollective, ...] = ()
    """Collectives that PyTorch's runtime issues, in the order of their first calls."""
    process: str = ""
    """For the processes of one script, which have numbers and no ranks: which one it is, in words.  0 is the script itself."""


@dataclass(frozen=True)
class Report:
    """All that one run found, without the texts of its stages."""

    schema: int
    run: str
    script: str
    torch: str | None
    outcome: Outcome
    compiles: tuple[Compile, ...]
    findings: tuple[Finding, ...]
    kernels: tuple[Kernel, ...]
    capture_gaps: tuple[CaptureGap, ...]
    pipeline: str = DEFAULT_PIPELINE
    predictions: tuple[Compile, ...] = ()
    """What the targets of the run would get of its compiles, with ids below those: ``0/0/h100``."""
    predicted_kernels: tuple[Kernel, ...] = ()
    """The kernels of the predictions."""
    world: int = 0
    """How many ranks the job has; 0: any other run, or it is not known."""
    ranks: tuple[RankReport, ...] = ()
    """The ranks that were run.  Compiles and kernels of the report are those of the first.  The trace of one rank alone has
    that one, if it communicates."""
    waits: tuple[CollectiveWait, ...] = ()
    """For real ranks on one machine: who waited in which collective."""
    pieces: tuple[Piece, ...] = ()
    """For an opened trace: what vLLM, SGLang, DDP or another backend compiled piece by piece."""
    may_differ: tuple[str, ...] = ()
    """Why a full run may find other things than this one, which was in the fast lane; empty: that is not known."""
    step_seconds: float = 0.0
    """Measured time of a step; 0: it was not profiled."""

    @property
    def members(self) -> tuple[str, str]:
        """What the numbers of ``ranks`` count, in words: one, and several."""
        return ("process", "processes") if any(one.process for one in self.ranks) else ("rank", "ranks")

    @property
    def compiles_of_processes(self) -> int:
        """How many compiles the processes made that the script started; they are in their own runs."""
        return sum(one.compiles for one in self.ranks[1:] if one.process)

    @property
    def with_predictions(self) -> tuple[Compile, ...]:
        """The compiles of the run, and those for its targets."""
        return (*self.compiles, *self.predictions)

    @property
    def whole(self) -> Report:
        """The same with its predictions among its compiles and kernels, for lists and documents of all that there is."""
        if not self.predictions:
            return self
        kernels = (*self.kernels, *self.predicted_kernels)
        return dataclasses.replace(
            self, compiles=self.with_predictions, kernels=kernels, predictions=(), predicted_kernels=()
        )

    @property
    def by_device(self) -> list[Report]:
        """The run as it was, and what each of its targets would have found."""
        return [self, *(self.of_target(name) for name in dict.fromkeys(each.target for each in self.predictions))]

    def of_target(self, target: str) -> Report:
        """What a run on the target would have found, as a report: its compiles with the stages of the script's own that
        come before the first of the target's, and its kernels.  If it is such a report already, itself.

        Raises LookupError with a message for the user if the run has no predictions for it.
        """
        if self.compiles and all(each.target == target for each in self.compiles):
            return self
        compiles = tuple(self._with_shared(each) for each in self.predictions if each.target == target)
        if not compiles:
            there = sorted({each.target for each in self.predictions})
            known = f"It has: {', '.join(there)}." if there else "Name it with irscope run --target."
            raise LookupError(f"Run {self.run} has no predictions for {target}. {known}")
        kernels = tuple(each for each in self.predicted_kernels if each.target == target)
        return dataclasses.replace(self, compiles=compiles, kernels=kernels, predictions=(), predicted_kernels=())

    def _with_shared(self, prediction: Compile) -> Compile:
        own = f"/{prediction.target}"
        base = next((each for each in self.compiles if each.id + own == prediction.id), None)
        predicted = {stage.name for stage in prediction.stages if stage.language != GUARDS_LANGUAGE}
        stages = base.stages if base is not None else ()
        first = next((number for number, stage in enumerate(stages) if stage.name in predicted), len(stages))
        return dataclasses.replace(prediction, stages=(*stages[:first], *prediction.stages))


@dataclass(frozen=True)
class RunSummary:
    """A line of ``irscope list``."""

    run: str
    script: str
    lane: Lane
    started: float
    """Seconds since the epoch."""
    torch: str | None
    outcome: Outcome | None
    """None while it is running (or if all its processes were killed at once)."""
    compiles: int
    findings: int
    kernels: int
    """Generated ones."""
    pipeline: str = DEFAULT_PIPELINE
    rank: int | None = None
    """The rank in a job of several; None: any other run."""
    world: int = 0
    """How many ranks the job has; 0: any other run."""
