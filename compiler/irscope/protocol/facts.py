"""What is known about a finding, as data: fixes are made of it, and sentences are made from it and never read.

Each class belongs to one kind of finding, whose declaration names it (`FindingKind.facts`); its field ``kind`` is that
kind's id, by which JSON tells the classes apart.
"""

from __future__ import annotations

from typing import Literal, Union

from irscope.vocabulary.records import dataclass

GRAD_MODE = "grad_mode"
"""PyTorch's name of the state that says whether gradients are computed."""


@dataclass(frozen=True)
class BreakFacts:
    """Facts of a graph break."""

    leaves_function_to_python: bool = False
    """Whether the whole function runs as plain Python; else the graph is cut at the break."""
    kind: Literal["graph-break"] = "graph-break"


@dataclass(frozen=True)
class VaryingSize:
    """Dimensions of a tensor that were not the same in all calls that compiled a function."""

    path: str
    """The tensor, in terms of the function's parameters: ``x``, ``batch['ids']``."""
    dimensions: tuple[int, ...]


@dataclass(frozen=True)
class RecompilationFacts:
    """Facts of a recompilation."""

    source: str = ""
    """What changed, as the user would write it: ``self.step``; empty if it has no name."""
    number: str = ""
    """The number that it was when the function was compiled, as code; empty if it was not a number."""
    state: str = ""
    """The state of PyTorch as a whole that changed, by PyTorch's name: `GRAD_MODE`; empty if none did."""
    varying: tuple[VaryingSize, ...] = ()
    sizes: tuple[int, ...] = ()
    """The sizes of the compiled code and of the call, of all guards on a size that failed."""
    has_size_0_or_1: bool = False
    """Whether one of the two sizes that differ is 0 or 1, for which PyTorch always compiles."""
    kind: Literal["recompilation"] = "recompilation"


@dataclass(frozen=True)
class NonFiniteFacts:
    """Facts of the first number that is not finite."""

    step: int = 0
    """The step of the optimizer, from 1; of a script without one, the call of the graph."""
    rank: int = 0
    culprit: str = ""
    """Who made it: ``model``, ``compiler``, ``data`` (an input), ``optimizer`` or ``loss`` (code that is not compiled)."""
    stage: str = ""
    """ID of the graph whose node it is."""
    node: str = ""
    target: str = ""
    """What the node computes: ``aten.log.default``."""
    kernel: str = ""
    operand: str = ""
    """The largest operand of the node, by the user's name if it is an input; ``magnitude``: its largest absolute value."""
    magnitude: str = ""
    library_file: str = ""
    library_line: int = 0
    replayed_from: int = 0
    """The step from which the calls were run again; 0: they were not."""
    is_same_bits: bool = False
    """Whether the parameters became the same again, bit for bit."""
    kind: Literal["non-finite"] = "non-finite"


@dataclass(frozen=True)
class KernelCheckFacts:
    """Facts of what an interpreter found in a kernel."""

    check: str = ""
    """``race``, ``out-of-bounds-read``, …: the kinds of `irscope.values.kernel.memory`."""
    kernel: str = ""
    stage: str = ""
    """ID of the stage that has the kernel's text; ``line``: the statement's, in it."""
    line: int = 0
    statement: str = ""
    nodes: tuple[str, ...] = ()
    """What the statement computes."""
    program: tuple[int, ...] = ()
    argument: str = ""
    index: int = 0
    kind: Literal["kernel-check"] = "kernel-check"


FindingFacts = Union[BreakFacts, RecompilationFacts, NonFiniteFacts, KernelCheckFacts]
