"""What clients send: the parameters of the custom requests and notifications of docs/PROTOCOL.md.

Names are snake_case here and camelCase there.  Lines are LSP's (0-based), because clients use them as they are.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from irscope.protocol import Lane


@dataclass(frozen=True)
class RunsParams:
    """Which runs to list: the newest `limit`, those of one script where a URI is given.

    With `each_pipeline` also the newest run of each pipeline of these scripts, however old it is.
    """

    uri: str | None = None
    limit: int = 20
    each_pipeline: bool = False


@dataclass(frozen=True)
class PipelinesParams:
    """The document whose interpreter is looked at; `trials` says whether to try pipelines that were not tried yet.

    With `only` the answer has no others than these.
    """

    uri: str = ""
    trials: bool = False
    only: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReportParams:
    """The id of the run whose report is asked for."""

    run: str


@dataclass(frozen=True)
class RunParams:
    """What to run: a document, or another entry instead of it, in a lane, with a pipeline.

    Without a pipeline it is the one of the settings in the deep lane, and Dynamo's usual one in the fast lane.
    """

    uri: str
    lane: Lane = Lane.DEEP
    entry: str = ""
    pipeline: str = ""


@dataclass(frozen=True)
class CheckParams:
    """A document whose run failed inside compiled code, and the id of that run where it is known."""

    uri: str
    run: str = ""


@dataclass(frozen=True)
class CompareParams:
    """The document whose script goes through several pipelines, and their names."""

    uri: str
    pipelines: tuple[str, ...]


@dataclass(frozen=True)
class ProfileParams:
    """The document whose script is run and measured, and how many calls of each compiled program are.

    Args:
        against: Names of pipelines through which each graph between breaks is timed, too.
        without_breaks: Whether the dearest breaks and recompilations are fixed for a trial, which is timed beside the
            script as it is.
        memory: Whether the memory of one step is measured, too.
    """

    uri: str
    calls: int = 20
    against: tuple[str, ...] = ()
    without_breaks: bool = False
    memory: bool = False


@dataclass(frozen=True)
class OpenTraceParams:
    """A trace or an artifact (a file or a folder), the folder in which its source files are looked for, and the run that an
    artifact is compared with; empty for none."""

    uri: str
    folder: str = ""
    run: str = ""


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
    """A document; `run` says whether a deep run may be started to answer.  Without a pipeline it is that of the settings."""

    uri: str
    run: bool = False
    pipeline: str = ""


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
    """The document of a stage, or a Python file together with the run that it is looked at in.

    `beside` names other runs whose documents are on the screen: a line of the user's has one number in all of them.
    """

    uri: str
    run: str = ""
    beside: tuple[str, ...] = ()


@dataclass(frozen=True)
class CounterpartsParams:
    """A line of a document of a run, and the URIs of the documents in which its counterparts are wanted.

    In documents of other runs they are what came from the same lines of the user's files.
    """

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
    """A request of a panel, which the module that answers it declares as ``REQUEST``.

    docs/PROTOCOL.md and the types of the extension are generated from the declaration, the module's docstring, and those
    of its types.
    """

    method: str
    params: type[Any]
    result: type[Any]
    """What the answer is, before it becomes JSON."""
    work: Callable[..., Awaitable[Any]]
    """Takes a `irscope_server.base.context.ReadContext` and the parameters."""


PARAMS: dict[str, type[Any]] = {
    "irscope/runs": RunsParams,
    "irscope/pipelines": PipelinesParams,
    "irscope/report": ReportParams,
    "irscope/run": RunParams,
    "irscope/cancel": UriParams,
    "irscope/checkWithoutCompile": CheckParams,
    "irscope/compare": CompareParams,
    "irscope/profile": ProfileParams,
    "irscope/openTrace": OpenTraceParams,
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

Types of panels are added by `irscope_server.app.features`, since this room does not know the panels.
"""
