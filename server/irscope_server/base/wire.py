"""The custom requests and notifications of docs/PROTOCOL.md as data, and how they go over the wire.

Names are snake_case here and camelCase there.  Lines are LSP's (0-based), because clients use them as they are.
Typed, since pygls' way with unknown messages (nested named tuples) is slow and renames keys.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import typing
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

from irscope.protocol import DEFAULT_PIPELINE, Lane, Limit
from irscope.vocabulary.stages import Part, Role


class BadParams(ValueError):
    """What a client sent does not have the shape that docs/PROTOCOL.md gives it."""


# --- what clients send ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RunsParams:
    """Which runs to list: the newest `limit`, those of one script where a URI is given."""

    uri: str | None = None
    limit: int = 20


@dataclass(frozen=True)
class ReportParams:
    """The id of the run whose report is asked for."""

    run: str


@dataclass(frozen=True)
class RunParams:
    """What to run: a document, or another entry instead of it, in a lane, with a pipeline."""

    uri: str
    lane: Lane = Lane.DEEP
    entry: str = ""
    pipeline: str = DEFAULT_PIPELINE


@dataclass(frozen=True)
class UriParams:
    """A document, for requests without other parameters."""

    uri: str


@dataclass(frozen=True)
class KernelsAtParams:
    """A line of a document; `run` says whether a deep run may be started to answer."""

    uri: str
    line: int
    run: bool = False


@dataclass(frozen=True)
class StagesOfParams:
    """A document; `run` says whether a deep run may be started to answer."""

    uri: str
    run: bool = False


@dataclass(frozen=True)
class GraphParams:
    """A graph stage, and an earlier stage to compare it with; `as_text` asks for the answer as one JSON string."""

    run: str
    stage: str
    compare_with: str = ""
    as_text: bool = False


@dataclass(frozen=True)
class StageParams:
    """A stage, by the id of its run and its own."""

    run: str
    stage: str


@dataclass(frozen=True)
class LinkedLinesParams:
    """The document of a stage, or a Python file together with the run that it is looked at in."""

    uri: str
    run: str = ""


@dataclass(frozen=True)
class CounterpartsParams:
    """A line of a document of a run, and the URIs of the documents in which its counterparts are wanted."""

    uri: str
    line: int
    run: str
    among: tuple[str, ...]


@dataclass(frozen=True)
class TrustedParams:
    """Whether the workspace is trusted; no script runs while it is not."""

    trusted: bool = True


@dataclass(frozen=True)
class PanelRequest:
    """A request of a panel, which the module that answers it declares as ``REQUEST``."""

    method: str
    params: type[Any]
    work: Callable[..., Awaitable[Any]]
    """Takes a `irscope_server.base.context.ReadContext` and the parameters."""


PARAMS: dict[str, type[Any]] = {
    "irscope/runs": RunsParams,
    "irscope/report": ReportParams,
    "irscope/run": RunParams,
    "irscope/cancel": UriParams,
    "irscope/entries": UriParams,
    "irscope/kernelsAt": KernelsAtParams,
    "irscope/stagesOf": StagesOfParams,
    "irscope/graph": GraphParams,
    "irscope/graphKernels": StageParams,
    "irscope/document": UriParams,
    "irscope/regions": UriParams,
    "irscope/linkedLines": LinkedLinesParams,
    "irscope/counterparts": CounterpartsParams,
    "irscope/trusted": TrustedParams,
}
"""Type of the parameters of each message that only irscope knows.

Those of panels are added by `irscope_server.app.features`, since this room does not know the panels.
"""


# --- what the server answers ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RunItem:
    """A run in short, as lists and trees show it."""

    run: str
    script: str
    script_uri: str
    lane: Lane
    started: float
    """Seconds since the epoch."""
    outcome: str | None
    """None while the run goes on."""
    message: str
    seconds: float
    compiles: int
    findings: int
    kernels: int


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
    title: str
    language: str
    bytes: int
    uri: str
    is_graph: bool
    nodes: int | None
    """Of a graph or of Inductor's schedule."""
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
class KernelItem:
    """A kernel: the document that holds it, and the lines of the user's code that it came from."""

    run: str
    stage: str
    name: str
    language: str
    compile: str
    uri: str
    line: int
    """Where the kernel starts in `uri`."""
    origins: tuple[Place, ...]


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
    stages: tuple[StageItem, ...]
    kernels: tuple[KernelItem, ...]


@dataclass(frozen=True)
class Gap:
    """Something that could not be captured, and why."""

    what: str
    why: str


@dataclass(frozen=True)
class RunTree:
    """A run with everything below it; `torch` is the version, None if the run did not get that far."""

    item: RunItem
    torch: str | None
    compiles: tuple[CompileItem, ...]
    gaps: tuple[Gap, ...]


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


@dataclass(frozen=True)
class CancelResult:
    """Whether there was a run to cancel."""

    cancelled: bool


@dataclass(frozen=True)
class EntryCandidate:
    """Something that could run a file: the entry, and why it is proposed."""

    entry: str
    detail: str


@dataclass(frozen=True)
class EntriesResult:
    """What runs a document, and what else could."""

    file: str
    """The document's path in its workspace folder: its key in the setting ``irscope.run.entryOf``."""
    entry: str | None
    """What runs it, where that is another file."""
    candidates: tuple[EntryCandidate, ...]


@dataclass(frozen=True)
class KernelsResult:
    """The kernels of a line; `reason` says in words why there are none."""

    run: str | None
    kernels: tuple[KernelItem, ...]
    reason: str


@dataclass(frozen=True)
class StagesResult:
    """The stages of a run; `reason` says in words why there are none, or why they are not of a new run."""

    run: str | None
    stages: tuple[StageOfCompile, ...]
    reason: str


RegionKind = Literal["compiled", "broken", "skipped", "kernel"]


@dataclass(frozen=True)
class Region:
    """Lines of a document that share a fate: compiled, broken, skipped, or a kernel; `kernels` are names."""

    kind: RegionKind
    line: int
    end_line: int
    """The last line, which belongs to it."""
    text: str
    kernels: tuple[str, ...]


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
    """The lines that belong together with the one that was asked for, by document."""

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
    """What runs it, where that is another file."""
    limit: Limit | None
    """The limit that stopped the last run, if one did."""
    text: str
    changed: Changed | None = None
    """Since the run before, in one line; None without one, or where one of the two did not run to its end."""


@dataclass(frozen=True)
class Output:
    """Text that the script printed."""

    run: str
    stream: Stream
    text: str


# --- over the wire ----------------------------------------------------------------------------------------------------


def to_wire(value: Any) -> Any:
    """Dataclasses to what `json` can write, names in camelCase."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {wire: to_wire(getattr(value, name)) for name, wire in _names(type(value))}
    if isinstance(value, (list, tuple)):
        return [to_wire(item) for item in value]
    return value.value if isinstance(value, enum.Enum) else value


def from_wire(cls: type[Any], data: Any) -> Any:
    """Parameters of a custom message.  Unknown keys are passed over.

    Raises
    ------
    BadParams
        A key is missing or has another type; the message names it.
    """
    data = {} if data is None else data
    if not isinstance(data, dict):
        raise BadParams(f"the parameters must be an object, not {type(data).__name__}")
    hints = _hints(typing.cast(Any, cls))
    values = {}
    for field in dataclasses.fields(cls):
        name = wire_name(field.name)
        if name in data and not (data[name] is None and field.default is not dataclasses.MISSING):
            values[field.name] = _checked(name, hints[field.name], data[name])
        elif field.default is dataclasses.MISSING:
            raise BadParams(f"{name!r} is missing")
    return cls(**values)


def _checked(name: str, hint: Any, value: Any) -> Any:
    if hint is Lane:
        try:
            return Lane(value)
        except ValueError:
            raise BadParams(f"{name!r} must be 'fast' or 'deep', not {value!r}") from None
    if hint == tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise BadParams(f"{name!r} must be an array of strings")
        return tuple(value)
    wanted = {str: str, int: int, bool: bool}.get(hint, str)
    if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        raise BadParams(f"{name!r} must be a {wanted.__name__}, not {type(value).__name__}")
    return value


@functools.cache
def _hints(cls: Any) -> dict[str, Any]:
    return typing.get_type_hints(cls)


@functools.cache
def _names(cls: Any) -> tuple[tuple[str, str], ...]:
    return tuple((field.name, wire_name(field.name)) for field in dataclasses.fields(cls))


def wire_name(name: str) -> str:
    """The name of a field as it is in messages: ``line_end`` is ``lineEnd``; ``pass_`` is ``pass``."""
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)
