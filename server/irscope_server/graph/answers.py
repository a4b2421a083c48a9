"""What the graph panel gets: plain dictionaries, since a graph may have a hundred thousand nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from irscope_server.base.results import Place, Symbol


class _EveryNode(TypedDict):
    name: list[str]
    kind: list[int]
    """0 placeholder, 1 get_attr, 2 call, 3 output."""
    op: list[int]
    original: list[int]
    detail: list[int]
    dtype: list[int]
    device: list[int]
    bytes: list[int | None]
    """Size of the result; null: unknown."""
    moved: list[int | None]
    """Bytes that it reads and writes."""
    flops: list[int | None]
    module: list[int]
    home: list[int]
    """The module that it is drawn in: its own or, if it has none, that of the nodes around it."""
    backward: list[int]
    """1: belongs to the backward of a joint graph."""
    line: list[int]
    """In `stageUri`, or for a node that is gone in `beforeUri`."""
    file: list[int]
    originLine: list[int]


class NodeColumns(_EveryNode, total=False):
    """Entry `i` of each list is node `i`; numbers are indices into the tables of the graph, `-1` is none."""

    state: list[int]
    """Only where it is compared: 0 as before, 1 added, 2 gone, 3 changed."""
    places: list[list[int]]
    """For a schedule: further lines that it came from, as file, line, file, line, …"""
    spans: list[list[int]]
    """For a schedule: the lines of `stageUri` that describe it, as first, last, first, last, …"""
    group: list[int]
    """For a schedule: what was fused with others."""


class GraphModule(TypedDict):
    """A module of the user's model."""

    path: list[str]
    type: str


class FusedNode(TypedDict):
    """A fused node of a schedule."""

    name: str
    type: str


class FusionDecision(TypedDict):
    """What Inductor decided on two nodes of its schedule, or on what they were fused into at that time; numbers of
    nodes."""

    first: list[int]
    second: list[int]
    fused: bool
    kind: str
    """`vertical`, `horizontal`, `template`."""
    why: str
    """The score of what was fused, or the reason against it."""


class _EveryGraph(TypedDict):
    nodes: NodeColumns
    edges: list[int]
    """From, to, from, to, …"""
    ops: list[str]
    originals: list[list[str]]
    """What operations were made from: the operator before decompositions, and what the first graph calls."""
    details: list[str]
    dtypes: list[str]
    devices: list[str]
    modules: list[GraphModule]
    files: list[str]


class GraphColumns(_EveryGraph, total=False):
    """The nodes and edges of a graph, and the tables that their numbers are indices of."""

    groups: list[FusedNode]
    """For a schedule: the fused nodes, by name and kind."""
    decisions: list[FusionDecision]


@dataclass(frozen=True)
class GraphVersion:
    """A graph along the pipeline, or after a pass that changed it; `before` is the one to compare it with, if any."""

    stage: str
    title: str
    pass_: str
    before: str
    """Empty for the first graph of all."""
    backward: bool


@dataclass(frozen=True)
class Rate:
    """Operations per second on a dtype."""

    dtype: str
    flops: float


@dataclass(frozen=True)
class EstimateTarget:
    """A device to estimate for; `bandwidth` is in bytes per second, and dtypes without a rate have that of ``f32``."""

    name: str
    bandwidth: float
    rates: tuple[Rate, ...]


@dataclass(frozen=True)
class GraphHead:
    """The subject of a graph."""

    title: str
    stage_uri: str
    compare_with: str | None
    """The stage that it is compared with, if it is: then the nodes that are gone are among the nodes."""
    before_uri: str | None
    versions: tuple[GraphVersion, ...]
    targets: tuple[EstimateTarget, ...]
    gpu: str
    """The GPU that the run used, as PyTorch reports it; empty if it used none, or that was not kept."""
    ran_on: str
    """The target that this GPU is; empty if it is none of them."""
    symbols: tuple[Symbol, ...]
    """The symbolic sizes in the types of its nodes, as far as the compile has them."""


@dataclass(frozen=True)
class KernelCall:
    """`call` counts the calls of one kernel."""

    name: str
    call: int
    place: Place | None


@dataclass(frozen=True)
class GraphKernels:
    """The kernels that the nodes of a graph became."""

    calls: tuple[KernelCall, ...]
    """In the order in which they run."""
    nodes: list[list[int]]
    """The numbers of the calls that contain each node of the stage."""
