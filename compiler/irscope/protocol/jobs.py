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
    """Of what the rank gives into it; None if a size is symbolic."""
    received_bytes: int | None
    """Of what the rank gets; None if a size is symbolic."""
    file: str
    """The user's file that it came from; empty if it is not known."""
    line: int


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
    """In how many calls."""
    ranks: tuple[int, ...]
    waited: tuple[float, ...]
    """Seconds that each of ``ranks`` waited."""


@dataclass(frozen=True)
class Piece:
    """A piece of a model that vLLM compiled by itself, for one range of sizes."""

    index: int
    name: str
    smallest: int
    largest: int
    """Of the range; both are the same for a single size."""
    cuda_graph: bool = False
    """Whether a CUDA graph is captured for it."""
    compiled: bool = False
    """Whether there was code for it in the end, compiled or from the cache."""
    cache: str = ""
    """``hit``, ``miss`` or ``bypass`` of the FX graph cache; empty if it is not known."""
    seconds: float = 0.0
    """From its begin to the last that Inductor wrote of it."""
    like: str = ""
    """The first piece with the same graph, by name; its own name if there is none before it."""
