"""What ranks of a job communicate and wait for, and the pieces in which a model is compiled elsewhere."""

from __future__ import annotations

from irscope.vocabulary.records import dataclass


@dataclass(frozen=True)
class Collective:
    """One communication of a rank with the others of its group, in one call of what was compiled."""

    compile: str
    stage: str
    """The graph that it is in."""
    node: str
    operation: str
    """``all_reduce``, ``all_gather_into_tensor``, ``reduce_scatter_tensor``, …"""
    reduction: str
    """``sum``, ``avg``, …; empty if it does not reduce."""
    group: str
    """The name of the process group; empty if the graph does not tell it."""
    tensor: str
    """What it gives, as the graph prints it: ``f32[8, 32][32, 1]cpu``; empty for several tensors."""
    sent_bytes: int | None
    """Bytes that the rank gives into it; None if a size is symbolic."""
    received_bytes: int | None
    """Bytes that the rank gets; None if a size is symbolic."""
    file: str
    """The user's file that it came from; empty if it is not known."""
    line: int


@dataclass(frozen=True)
class OverlapMove:
    """A graph on the way down in which another number of operations is between a collective's start and its wait."""

    stage: str
    passed: str
    """The pass that made this version of the graph; empty if no pass did."""
    operations: int


@dataclass(frozen=True)
class CollectiveOverlap:
    """What a rank computes while a collective runs: all that is between its start and its wait, in one call."""

    compile: str
    stage: str
    """The stage whose order this is: the output code, or a graph if there is no output code."""
    start: int
    """1-based line of the stage's text."""
    wait: int
    """The line that waits for it; 0 if nothing there does."""
    operation: str
    reduction: str
    group: str
    group_size: int | None
    """Ranks in the group; None if it is not known."""
    sent_bytes: int | None
    """Bytes that the rank gives into it; None if they are not known."""
    received_bytes: int | None
    file: str
    """The user's file that it came from; empty if it is not known."""
    line: int
    operations: int | None
    """Calls of kernels, or operations of the graph, in between: 0 if the rank does nothing but wait.  None if nothing there
    waits for it."""
    work: tuple[str, ...] = ()
    """Their names, the first ones of many."""
    moved_bytes: int | None = None
    """That they read and write; None if it is not known."""
    flops: int | None = None
    """By PyTorch's formulas; None if none of them has one."""
    moves: tuple[OverlapMove, ...] = ()
    """The graph that autograd traced, and each one after it in which the number is another."""


@dataclass(frozen=True)
class BucketSplit:
    """A part of a graph that Dynamo cut at the end of a bucket of DDP, whose gradients are reduced by one all-reduce.

    The all-reduce is outside of the graphs: it starts when the part's backward has ended, and runs beside the backward of
    the parts before it.
    """

    compile: str
    number: int
    """In the order of the backward, from 1."""
    name: str
    """``submod_2``"""
    parameters: int
    bytes: int | None
    """Bytes of its parameters, and so of its gradients; None if a size is symbolic."""
    backward: str
    """Output code of its backward, or its graph; empty if there is none."""
    beside: tuple[str, ...]
    """The operations of the parts whose backward is still to come."""
    operations: int
    """Calls of kernels, or operations, of these: 0 if the bucket runs beside nothing compiled."""
    moved_bytes: int | None = None
    flops: int | None = None


@dataclass(frozen=True)
class RuntimeCollective:
    """All calls of a collective that is in no graph, since PyTorch's runtime issues it between or beside graphs."""

    issuer: str
    """``FSDP2``, ``DDP`` or ``pipeline``"""
    operation: str
    module: str
    """That it is for, from the root: ``layers.0``; a pipeline's stage; empty if it is not known."""
    peer: int | None
    """The rank that it sends to or receives from; None for a collective of a group."""
    bytes: int | None
    """That the rank gives into one call, or receives; None if they are not known."""
    file: str
    """The user's file whose line led to it; empty if it is not known."""
    line: int
    calls: int
    beside: int | None
    """Calls after which the rank went on, and waited later; None if it is not known, as under the fake group."""
    beside_seconds: float | None
    """From these calls until the rank waited, all together: by the clock of the host, or of the device if it timed them."""
    device_seconds: float | None = None
    """What these calls took on the device, if it timed them; in the rest it waited, and computed nothing."""


@dataclass(frozen=True)
class CollectiveWait:
    """All calls of one collective of the user's code, and which ranks waited in them."""

    operation: str
    file: str
    """The user's file that it was called from; empty if it is not known."""
    line: int
    calls: int
    seconds: float
    """That all ranks together waited."""
    longest: float
    """Seconds that one rank waited in one call."""
    late: int
    """The rank that was the last to arrive most often."""
    late_calls: int
    """The number of calls in which it was the last."""
    ranks: tuple[int, ...]
    waited: tuple[float, ...]
    """Seconds that each of ``ranks`` waited."""
    typical: float = 0.0
    """Seconds that the others waited for the rank that was last: of each call the median of the ranks, and of these the
    median of the calls in which that rank was ``late``."""
    before_file: str = ""
    """The user's file that ``late`` was in longest before it came, in these calls; empty if it is not known."""
    before_line: int = 0


@dataclass(frozen=True)
class Piece:
    """A piece of a model that was compiled by itself, for one size or one range of sizes.

    vLLM names its pieces and their sizes.  Those of SGLang, DDP and other backends are known from the
    order of PyTorch's own records.
    """

    index: int
    name: str
    """vLLM's (``submod_0``), or ``piece 0``."""
    smallest: int
    """The smallest size of the range; if several sizes vary, of the first."""
    largest: int | None
    """The same for a single size; None if the piece takes any size from the smallest on."""
    cuda_graph: bool | None = False
    """Whether a CUDA graph is captured for it; None if the trace does not say, which only vLLM's does."""
    compiled: bool = False
    """Whether there was code for it in the end, compiled or from the cache."""
    cache: str = ""
    """``hit``, ``miss`` or ``bypass`` of the FX graph cache; empty if it is not known."""
    seconds: float = 0.0
    """From the first to the last that PyTorch wrote of it."""
    like: str = ""
    """The first piece with the same graph, by name; its own name if there is none before it."""
    size: str = ""
    """What it was compiled for, in words: ``1–512``, ``8``, ``4 × 128``, ``any size``; ``one size`` if nothing shows another."""
    compile: str = ""
    """The compile of Dynamo; empty if it was compiled after that, for a size that came later."""
