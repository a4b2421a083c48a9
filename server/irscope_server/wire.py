"""The custom requests and notifications of docs/PROTOCOL.md as data, and how they go over the wire.

Names are snake_case here and camelCase there.  Lines are LSP's (0-based), because clients use them as they are.
Typed, since pygls' way with unknown messages (nested named tuples) is slow and renames keys.
"""

from __future__ import annotations

import dataclasses
import functools
import typing
from dataclasses import dataclass
from typing import Any

from irscope.protocol import Lane


class BadParams(ValueError):
    """What a client sent does not have the shape that docs/PROTOCOL.md gives it."""


# --- what clients send ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RunsParams:
    uri: str | None = None
    limit: int = 20


@dataclass(frozen=True)
class ReportParams:
    run: str


@dataclass(frozen=True)
class RunParams:
    uri: str
    lane: Lane = Lane.DEEP
    entry: str = ""


@dataclass(frozen=True)
class UriParams:
    uri: str


@dataclass(frozen=True)
class KernelsAtParams:
    uri: str
    line: int
    run: bool = False


@dataclass(frozen=True)
class StagesOfParams:
    uri: str
    run: bool = False


@dataclass(frozen=True)
class GraphParams:
    run: str
    stage: str
    compare_with: str = ""
    as_text: bool = False


@dataclass(frozen=True)
class StageParams:
    run: str
    stage: str


@dataclass(frozen=True)
class LinkedLinesParams:
    uri: str
    run: str = ""


@dataclass(frozen=True)
class CounterpartsParams:
    uri: str
    line: int
    run: str
    among: tuple[str, ...]


@dataclass(frozen=True)
class SubjectOfParams:
    uri: str
    line: int = 0


@dataclass(frozen=True)
class PipelineParams:
    run: str
    compile: str | None = None


@dataclass(frozen=True)
class StepParams:
    run: str
    stage: str = ""
    uri: str = ""
    line: int = 0
    by: int = 1
    target: str = ""


@dataclass(frozen=True)
class FindingsParams:
    run: str


@dataclass(frozen=True)
class PhasesParams:
    run: str
    compile: str | None = None


@dataclass(frozen=True)
class MemoryParams:
    run: str
    compile: str | None = None


@dataclass(frozen=True)
class ChangesParams:
    run: str
    since: str = ""


@dataclass(frozen=True)
class TrustedParams:
    trusted: bool = True


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
    "irscope/subjectOf": SubjectOfParams,
    "irscope/pipeline": PipelineParams,
    "irscope/step": StepParams,
    "irscope/findings": FindingsParams,
    "irscope/phases": PhasesParams,
    "irscope/memory": MemoryParams,
    "irscope/changes": ChangesParams,
    "irscope/trusted": TrustedParams,
}
"""Type of the parameters of each message that only irscope knows."""


# --- what the server answers ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RunItem:
    run: str
    script: str
    script_uri: str
    lane: str
    started: float
    outcome: str | None
    message: str
    seconds: float
    compiles: int
    findings: int
    kernels: int


@dataclass(frozen=True)
class StageItem:
    run: str
    stage: str
    name: str
    title: str
    language: str
    bytes: int
    uri: str
    is_graph: bool
    nodes: int | None
    made: bool


@dataclass(frozen=True)
class StageOfCompile(StageItem):
    compile: str
    function: str


@dataclass(frozen=True)
class Place:
    uri: str
    line: int


@dataclass(frozen=True)
class KernelItem:
    run: str
    stage: str
    name: str
    language: str
    compile: str
    uri: str
    line: int
    origins: tuple[Place, ...]


@dataclass(frozen=True)
class CompileItem:
    id: str
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
    what: str
    why: str


@dataclass(frozen=True)
class RunTree:
    item: RunItem
    torch: str | None
    compiles: tuple[CompileItem, ...]
    gaps: tuple[Gap, ...]


@dataclass(frozen=True)
class RunsResult:
    runs: tuple[RunItem, ...]


@dataclass(frozen=True)
class RunResult:
    run: str | None
    outcome: str
    message: str


@dataclass(frozen=True)
class CancelResult:
    cancelled: bool


@dataclass(frozen=True)
class EntryCandidate:
    entry: str
    detail: str


@dataclass(frozen=True)
class EntriesResult:
    file: str
    """The document's path in its workspace folder: its key in the setting ``run.entryOf``."""
    entry: str | None
    candidates: tuple[EntryCandidate, ...]


@dataclass(frozen=True)
class KernelsResult:
    run: str | None
    kernels: tuple[KernelItem, ...]
    reason: str


@dataclass(frozen=True)
class StagesResult:
    run: str | None
    stages: tuple[StageOfCompile, ...]
    reason: str


@dataclass(frozen=True)
class Region:
    kind: str
    """``compiled``, ``broken``, ``skipped`` or ``kernel``."""
    line: int
    end_line: int
    """The last line, which belongs to it."""
    text: str
    kernels: tuple[str, ...]


@dataclass(frozen=True)
class RegionsResult:
    run: str | None
    stale: bool
    regions: tuple[Region, ...]


@dataclass(frozen=True)
class DocumentResult:
    text: str
    language_id: str


@dataclass(frozen=True)
class LineKey:
    """A line of a Python file that lines of stages came from."""

    uri: str
    line: int
    number: int
    """Its number in the run: the same in all documents, neighbours have different ones."""


@dataclass(frozen=True)
class LinkedLinesResult:
    run: str
    keys: tuple[LineKey, ...]
    lines: tuple[tuple[int, ...], ...]
    """A line of the document and the indices of its keys; without any it called something that was compiled."""


@dataclass(frozen=True)
class LinesOf:
    uri: str
    lines: tuple[int, ...]


@dataclass(frozen=True)
class CounterpartsResult:
    places: tuple[LinesOf, ...]


# --- notifications of the server --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WorkerState:
    state: str
    """``stopped``, ``starting``, ``ready``, ``running``, ``crashed`` or ``refused``."""
    text: str
    python: str
    uri: str | None
    run: str | None
    phase: str | None = None
    """What a run is doing, in few words: ``compiling kernel 12 of 40``."""


@dataclass(frozen=True)
class RunsChanged:
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
    uri: str
    state: str
    """``none``, ``noEntry``, ``noRun``, ``current`` or ``stale``."""
    entry: str | None
    limit: str | None
    text: str
    changed: Changed | None = None
    """Since the run before; nothing where nothing was."""


@dataclass(frozen=True)
class Output:
    run: str
    stream: str
    text: str


# --- over the wire ----------------------------------------------------------------------------------------------------


def to_wire(value: Any) -> Any:
    """Dataclasses to what `json` can write, names in camelCase."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {wire: to_wire(getattr(value, name)) for name, wire in _names(type(value))}
    if isinstance(value, (list, tuple)):
        return [to_wire(item) for item in value]
    return value


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
        name = _camel(field.name)
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
    return tuple((field.name, _camel(field.name)) for field in dataclasses.fields(cls))


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)
