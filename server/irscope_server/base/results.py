"""What the server answers and notifies: the types of docs/PROTOCOL.md that are no panel's and not the graph's.

Names are snake_case here and camelCase there.  Lines are LSP's (0-based), because clients use them as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from irscope.driver.availability import Availability
from irscope.protocol import CaptureGap, Lane, Limit
from irscope.vocabulary.stages import Part, Role


@dataclass(frozen=True)
class RunItem:
    """A run in short, as lists and trees show it."""

    run: str
    script: str
    script_uri: str
    lane: Lane
    pipeline: str
    """The name of the pipeline that its programs go through."""
    started: float
    """Seconds since the epoch."""
    outcome: str | None
    """None while the run goes on."""
    message: str
    seconds: float
    compiles: int
    findings: int
    kernels: int
    rank: int | None
    """A rank of a job of several; None: any other run."""
    world: int
    """How many ranks the job has; 0: any other run."""


@dataclass(frozen=True)
class PipelinesResult:
    """All pipelines, and whether each works in the interpreter that runs a document."""

    python: str
    chosen: str
    """The name of the pipeline of deep runs, from the settings."""
    pipelines: tuple[Availability, ...]


@dataclass(frozen=True)
class StageItem:
    """A stage in short: its id, its title for people, its size, and the URI of its document."""

    run: str
    stage: str
    name: str
    role: Role
    """What it is, whatever pipeline it belongs to."""
    part: Part
    """Which part of a training step it computes, if its kind says so."""
    group: str
    """The heading below which lists show it: the part of the compiler that made it."""
    title: str
    language: str
    bytes: int
    uri: str
    is_graph: bool
    nodes: int | None
    """The number of nodes of a graph or of Inductor's schedule."""
    made: bool
    """False: it is made when its document is first opened, which takes seconds."""


@dataclass(frozen=True)
class StageOfCompile(StageItem):
    """A stage together with the compile that it belongs to."""

    compile: str
    function: str


@dataclass(frozen=True)
class Place:
    """A line of a document."""

    uri: str
    line: int


@dataclass(frozen=True)
class Symbol:
    """A symbolic size, and what it stands for."""

    name: str
    source: str
    """Where it comes from: ``L['x'].size()[0]``; empty if it is known only at run time."""
    text: str
    """``8 in this compile, 2 to ∞``."""


@dataclass(frozen=True)
class KernelItem:
    """A kernel: the document that holds it, and the lines of the user's code that it came from."""

    run: str
    stage: str
    name: str
    language: str
    compile: str
    group: str
    """The heading below which lists show it."""
    uri: str
    line: int
    """Where the kernel starts in `uri`."""
    origins: tuple[Place, ...]


@dataclass(frozen=True)
class KernelChoice(KernelItem):
    """A kernel with what tells it from others in a list; whatever is not known is empty."""

    function: str
    """What was compiled."""
    ops: tuple[str, ...]
    """The operations of the program that it computes, in the order of the graph."""
    module: str
    """The path of the ``nn.Module`` that most of them are in, from the module that was compiled."""
    module_class: str
    """The class of that module."""
    heading: str
    """Its module, and of the same module of layers that repeat: ``layers.0–31.mlp ×32``."""
    innermost: Place | None
    """The line nearest to what it computes, of a library's file where the user's code calls one."""
    direction: str
    """``forward`` or ``backward``, of a compile that has both."""
    bytes: int
    """The size of its text; 0 for a library call."""


@dataclass(frozen=True)
class CompileItem:
    """A compile in short, with its stages and kernels."""

    id: str
    """PyTorch's own name of it, for example ``0/1``."""
    function: str
    uri: str
    line: int
    outcome: str
    restarts: int
    graph_ops: int
    seconds: float
    groups: tuple[str, ...]
    """The headings of its stages and kernels, in order."""
    stages: tuple[StageItem, ...]
    kernels: tuple[KernelItem, ...]


@dataclass(frozen=True)
class RunTree:
    """A run with everything below it; `torch` is the version, None if the run did not get that far."""

    item: RunItem
    torch: str | None
    compiles: tuple[CompileItem, ...]
    gaps: tuple[CaptureGap, ...]
    ranks: int
    """How many ranks its job has; 0 for a run of one process, and for a rank that is not the first."""


@dataclass(frozen=True)
class RunsResult:
    """The runs, newest first."""

    runs: tuple[RunItem, ...]


@dataclass(frozen=True)
class RunResult:
    """How a run ended; `run` is None if none could start."""

    run: str | None
    outcome: str
    message: str
    compiles: int = 0


@dataclass(frozen=True)
class CompareResult:
    """The newest of the runs of a comparison of pipelines; `run` is None if nothing ran, and `message` says what went wrong."""

    run: str | None
    message: str


@dataclass(frozen=True)
class ProfileResult:
    """The run whose programs were measured; `run` is None if none was, and `message` says why."""

    run: str | None
    message: str


@dataclass(frozen=True)
class ArtifactPlace:
    """What an artifact does not fit, or has made a constant, at a line (from 1) of a file of the user."""

    what: str
    file: str
    line: int


@dataclass(frozen=True)
class OpenTraceResult:
    """The run that a trace from elsewhere was opened as; `run` is None if it was not, and `message` says why.  `text` is what
    `irscope open` prints of an artifact, which is not a run, and `places` are the lines in it."""

    run: str | None
    message: str
    text: str = ""
    places: tuple[ArtifactPlace, ...] = ()


@dataclass(frozen=True)
class CheckResult:
    """Whether a script that failed inside compiled code fails without compile, too, in words; `run` is None if nothing
    was checked, and `message` says why."""

    run: str | None
    message: str


@dataclass(frozen=True)
class CancelResult:
    """Whether there was a run to cancel."""

    cancelled: bool


@dataclass(frozen=True)
class EntryCandidate:
    """Something that could run a file: the entry as it is written in a setting, and why it is proposed."""

    entry: str
    detail: str


@dataclass(frozen=True)
class EntriesResult:
    """What runs a document, and what else could."""

    file: str
    """The document's path in its workspace folder: its key in the setting ``irscope.run.entryOf``."""
    entry: str | None
    """What runs it, if that is another file."""
    candidates: tuple[EntryCandidate, ...]


@dataclass(frozen=True)
class KernelsResult:
    """The kernels of a line; `reason` says in words why there are none. The run may go on and have more of them later."""

    run: str | None
    kernels: tuple[KernelChoice, ...]
    reason: str
    running: bool = False


@dataclass(frozen=True)
class StagesResult:
    """The stages of a run; `reason` says in words why there are none, or why they are not of a new run."""

    run: str | None
    stages: tuple[StageOfCompile, ...]
    reason: str


RegionKind = Literal["compiled", "broken", "skipped", "kernel", "measured"]


@dataclass(frozen=True)
class Region:
    """Lines of a document that share a fate: compiled, broken, skipped, a kernel, or measured; `kernels` are names."""

    kind: RegionKind
    line: int
    end_line: int
    """The last line, which belongs to it."""
    text: str
    kernels: tuple[str, ...]
    heat: float = 0.0
    """For a measured line: its share of the dearest line's time, 0 to 1."""


@dataclass(frozen=True)
class RegionsResult:
    """The regions of a document; `stale`: the text was edited since the run."""

    run: str | None
    stale: bool
    regions: tuple[Region, ...]


@dataclass(frozen=True)
class DocumentResult:
    """The text of a read-only document."""

    text: str
    language_id: str


@dataclass(frozen=True)
class LineKey(Place):
    """A line of a Python file that lines of stages came from."""

    number: int
    """Its number in the run: the same in all documents, neighbours have different ones."""


@dataclass(frozen=True)
class LinkedLinesResult:
    """Which lines of a document came from which lines of Python files; `keys` are those lines."""

    run: str
    keys: tuple[LineKey, ...]
    lines: tuple[tuple[int, ...], ...]
    """A line of the document and the indices of its keys; without any it called something that was compiled."""


@dataclass(frozen=True)
class LinesOf:
    """Some lines of one document."""

    uri: str
    lines: tuple[int, ...]


@dataclass(frozen=True)
class CounterpartsResult:
    """The lines that belong together with the one that was asked for, by document; of a stage the line that computes
    most comes first, then the others as they follow."""

    places: tuple[LinesOf, ...]


# --- notifications of the server --------------------------------------------------------------------------------------


WorkerPhase = Literal["stopped", "starting", "ready", "running", "crashed", "refused"]
Stream = Literal["stdout", "stderr"]


@dataclass(frozen=True)
class WorkerState:
    """What the worker is doing, for the status item of the client."""

    state: WorkerPhase
    text: str
    python: str
    uri: str | None
    run: str | None
    phase: str | None = None
    """What a run is doing, in few words: ``compiling kernel 12 of 40``."""


@dataclass(frozen=True)
class RunsChanged:
    """A run has begun, has something new, or has ended."""

    run: str
    uri: str
    running: bool


@dataclass(frozen=True)
class Changed:
    """What the last run changed, for one line: ``1 break fixed · 2 kernels gained · −0.4 s``."""

    run: str
    since: str
    text: str


@dataclass(frozen=True)
class FileState:
    """What is known about an open file: what runs it, and whether the results shown are current."""

    uri: str
    state: Literal["none", "noEntry", "noRun", "current", "stale"]
    """``noEntry``: a library module that nothing is known to run; ``stale``: edited since the run whose results are shown."""
    entry: str | None
    """What runs it, if that is another file."""
    limit: Limit | None
    """The limit that stopped the last run, if one did."""
    text: str
    standing: Literal["failed", "causes", "nothing", "clean"] | None = None
    """How the last run went; None without one."""
    label: str = ""
    """The same in a few words: ``3 causes, 36 of 41 s``."""
    changed: Changed | None = None
    """Since the run before, in one line; None without one, or where one of the two did not run to its end."""


@dataclass(frozen=True)
class Output:
    """Text that the script printed."""

    run: str
    stream: Stream
    text: str
