"""What the rooms say to each other: plain data, standard library only.

This is the one module that the capture side and the server share for messages.  Three groups live here:

* the *report* of a run (`Report` and what it is made of), which is also the JSON of ``irscope run --json``;
* the *request* that starts a run (`RunRequest`);
* the *messages* that a run in progress sends (`Message`), one JSON object a line.

Anything big (the text of a stage) stays in the run store and is named by id.

Lines are 1-based, columns are 0-based indices into the line as a Python string, ends are exclusive.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import types
import typing
from dataclasses import dataclass, field
from typing import Any, TypeVar, Union

from irscope.vocabulary.lanes import Lane as Lane
from irscope.vocabulary.limits import Budget as Budget
from irscope.vocabulary.limits import Limit as Limit
from irscope.vocabulary.severities import Severity as Severity

SCHEMA = 1
"""Version of the JSON of `Report`; raised when a field changes its meaning or goes away."""

DEFAULT_PIPELINE = "inductor"
"""The pipeline of a run that names none."""


class EntryKind(str, enum.Enum):
    """What is at the beginning of a run."""

    SCRIPT = "script"
    """A file, as ``python script.py``."""
    MODULE = "module"
    """A module or package by its dotted name, as ``python -m package``."""
    PYTEST = "pytest"
    """A pytest node id, as ``python -m pytest tests/test_model.py::test_forward``."""
    NOTEBOOK = "notebook"
    """The code cells of a Jupyter notebook, one after the other."""

    @property
    def is_file(self) -> bool:
        """Whether it is named by a path; its folder is then the first of ``sys.path``."""
        return self in (EntryKind.SCRIPT, EntryKind.NOTEBOOK)


class OutcomeKind(str, enum.Enum):
    """How a run ended."""

    COMPLETED = "completed"
    """The script ran to its end."""
    SCRIPT_ERROR = "script-error"
    """The script failed by itself: an exception, a syntax error, a non-zero ``sys.exit``."""
    BUDGET = "budget"
    """irscope stopped it because a limit was reached."""
    CANCELLED = "cancelled"
    """The user or the client stopped it."""
    CRASHED = "crashed"
    """The process died: a signal, ``os._exit``, out of memory."""
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


@dataclass(frozen=True, order=True)
class Position:
    """A place between two characters of a file."""

    line: int
    column: int


@dataclass(frozen=True, order=True)
class Range:
    """A range of a file; `end` is exclusive."""

    start: Position
    end: Position


@dataclass(frozen=True)
class Related:
    """Another place that has to do with a finding: a caller, a library line, the call that recompiled."""

    file: str
    range: Range
    message: str


@dataclass(frozen=True)
class Edit:
    """Replaces a range of a finding's file by a text; an empty range inserts."""

    range: Range
    text: str


@dataclass(frozen=True)
class Fix:
    """A change of the source that removes a finding.  Edits at one position apply in the order given."""

    title: str
    caveat: str
    """What it changes, or when it does not apply; may be empty."""
    edits: tuple[Edit, ...]


@dataclass(frozen=True)
class Cost:
    """What a finding brought about: seconds of compile time, and graphs that would not be there without it."""

    seconds: float
    graphs: int


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

    @property
    def cause(self) -> tuple[str, str, str, Range]:
        """Two reports with the same cause are one finding."""
        return (self.kind, self.code, self.file, self.range)


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


@dataclass(frozen=True, order=True)
class Origin:
    """A line of the user's files that something came from."""

    file: str
    line: int


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


@dataclass(frozen=True)
class CaptureGap:
    """Something that could not be captured, and why."""

    what: str
    why: str


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
    pipeline: str = DEFAULT_PIPELINE


# --- the request ------------------------------------------------------------------------------------------------------


GIVEN = "values on the inputs that were given"
"""The `CaptureGap.what` where `ValuesRequest.inputs` do not fit a graph."""


@dataclass(frozen=True)
class ValuesRequest:
    """What a value run keeps of the numbers that flow through compiled graphs; see `irscope.values`.

    Parameters
    ----------
    compile
        Only in this compile; empty: in each.
    stage
        The graph stage whose values are kept, by name (``forward-graph``); empty: what Inductor got, forward and backward;
        ``all``: every stage whose graph takes the inputs of the compiled one.
    call
        Which call of each compiled graph, from 1.
    statistics, divergence
        Keep the values of each node; compare compiled code with its graph.
    keep_bytes
        Bytes of elements of tensors that are kept, at most.
    inputs
        Path of a file that gives inputs in place of those of the call where the graph is run by itself: a Python file that
        defines ``inputs``, or what ``torch.save`` wrote (`irscope.values.run.inputs`).  Empty: the inputs of the call.
    """

    compile: str = ""
    stage: str = ""
    call: int = 1
    statistics: bool = True
    divergence: bool = False
    keep_bytes: int = 512 * 1024 * 1024
    inputs: str = ""


@dataclass(frozen=True)
class RunRequest:
    """What is asked of a run's process, as the one JSON argument that it gets."""

    run: str
    script: str
    """Absolute path of the script; for an entry that is not one what the store calls it: ``-m package.module``."""
    args: tuple[str, ...]
    lane: Lane
    store: str
    """Path of the run store, which exists already and holds a row for this run."""
    argv0: str = ""
    """The script as it was typed, which is what it sees as ``sys.argv[0]``; empty: the absolute path."""
    overlays: dict[str, str] = field(default_factory=dict)
    """Text to be used in place of what is on disk, by absolute path: the editor's unsaved buffers."""
    entry: EntryKind = EntryKind.SCRIPT
    target: str = ""
    """The dotted name or the node id, for an entry that is not a script."""
    budget: Budget = field(default_factory=Budget)
    """The limits; most are enforced from outside of the run's process (driver/budgets.py)."""
    symbolic_trace: bool | None = None
    """Whether Dynamo's walk is recorded step by step; None: in the deep lane it is."""
    cells: tuple[str, ...] = ()
    """Names of a notebook's cells (`irscope.usercode.notebooks`), in the order in which they run; their texts are overlays."""
    values: ValuesRequest | None = None
    """Makes it a value run; None: no numbers are kept."""
    pipeline: str = DEFAULT_PIPELINE
    """The name of the pipeline that the script's programs go through."""


# --- messages from a run ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Started:
    """The run's process is up; torch was found (its version) but is imported only when the script does so."""

    torch: str


@dataclass(frozen=True)
class Refused:
    """The environment cannot run it; the script has not started."""

    reason: str


@dataclass(frozen=True)
class Unfit:
    """A fork of the worker cannot run this script as a fresh process would; its run is discarded."""

    reason: str


@dataclass(frozen=True)
class CompileSeen:
    """A compile began, or ended."""

    compile: Compile


@dataclass(frozen=True)
class FindingSeen:
    """A finding is new, or its count grew."""

    finding: Finding


@dataclass(frozen=True)
class GapSeen:
    """Something could not be captured."""

    gap: CaptureGap


@dataclass(frozen=True)
class Progress:
    """What is going on, for a status line.

    Parameters
    ----------
    text
        ``compiling kernel 12 of 40: forward (model.py:30, 0/0)``.
    phase
        The same in few words: ``compiling kernel 12 of 40``.
    done, total
        Kernels of the current graph; a total of 0: there are none to count.
    """

    text: str
    phase: str = ""
    done: int = 0
    total: int = 0


@dataclass(frozen=True)
class LimitReached:
    """The run's process has seen that a limit is reached; the driver ends it."""

    limit: Limit
    message: str


@dataclass(frozen=True)
class ScriptEnded:
    """The script's main module ended.  ``error`` is empty if it ended well."""

    exit_code: int
    error: str


Message = Union[Started, Refused, Unfit, CompileSeen, FindingSeen, GapSeen, Progress, LimitReached, ScriptEnded]

_MESSAGES: dict[str, type[Any]] = {cls.__name__: cls for cls in typing.get_args(Message)}


def encode_message(message: Message) -> dict[str, Any]:
    """The JSON object of a message; its key ``is`` names the class."""
    return {"is": type(message).__name__, **to_json(message)}


def decode_message(data: dict[str, Any]) -> Message:
    """The inverse of `encode_message`.  Raises ValueError for something that is not a message."""
    cls = _MESSAGES.get(data.get("is", "")) if isinstance(data, dict) else None
    if cls is None:
        raise ValueError(f"not a message: {str(data)[:200]}")
    return typing.cast(Message, from_json(cls, data))


# --- plain data to JSON and back --------------------------------------------------------------------------------------

T = TypeVar("T")


def to_json(value: Any) -> Any:
    """Dataclasses to dicts, tuples to lists, enums to their values."""
    if value is None or type(value) in (str, int, float, bool):  # most are; a large answer has a million
        return value
    if isinstance(value, enum.Enum):
        return value.value
    if names := _names(value.__class__):
        return {name: to_json(getattr(value, name)) for name in names}
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    if isinstance(value, dict):
        return {str(key): to_json(item) for key, item in value.items()}
    return value


@functools.cache
def _names(cls: type) -> tuple[str, ...]:
    """Of the fields, where it is a dataclass."""
    return tuple(field.name for field in dataclasses.fields(cls)) if dataclasses.is_dataclass(cls) else ()


def from_json(cls: type[T], data: Any) -> T:
    """The inverse of `to_json` for the dataclasses of this module.

    Unknown keys are passed over, so that an older reader understands a newer writer.
    Raises KeyError for a missing field without default, ValueError for a value outside its enum.
    """
    return typing.cast(T, _decode(cls, data))


@functools.cache
def _hints(cls: Any) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def _decode(hint: Any, data: Any) -> Any:
    origin = typing.get_origin(hint)
    if origin in (Union, types.UnionType):
        if data is None:
            return None
        return _decode(next(arg for arg in typing.get_args(hint) if arg is not type(None)), data)
    if origin is tuple:
        item = typing.get_args(hint)[0]
        return tuple(_decode(item, entry) for entry in data)
    if origin is dict:
        return dict(data)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        hints = _hints(hint)
        known = {}
        for f in dataclasses.fields(hint):
            if f.name in data:
                known[f.name] = _decode(hints[f.name], data[f.name])
            elif f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING:
                raise KeyError(f"{hint.__name__}.{f.name}")
        return typing.cast(Any, hint)(**known)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return hint(data)
    return data
