"""What a kind of stage is.  Each pipeline declares its own kinds; everything else asks for their properties here."""

from __future__ import annotations

from enum import Enum

from irscope.vocabulary.records import dataclass

KERNELS = "kernel"
"""In the IDs of stages the folder of what a program's kernels are: ``0/0/kernel/NAME``, ``0/0/kernel-backward/NAME``.
It is the same in every pipeline, whatever it calls its kind of stage for a kernel."""

GUARDS_LANGUAGE = "irscope-guards"
"""The language of a compile's guards. A prediction for a target has those that its code generator added to the script's."""


class Role(Enum):
    """What a stage is to code that does not know its pipeline."""

    SOURCE = "source"
    """What the compiler reads, with one element a line: Python bytecode."""
    GRAPH = "graph"
    """Operations as nodes, printed as an FX graph."""
    SCHEDULE = "schedule"
    """Nodes as the code generator schedules them; its data has ``nodes``, each with ``parts`` and ``origins``."""
    CODE = "code"
    """The program that calls the kernels."""
    KERNEL = "kernel"
    """The source text of one generated kernel."""
    LOWERED = "lowered"
    """A text of one kernel below its source: an IR, assembly or machine code."""
    TEXT = "text"
    """Any other representation on the way down.  Its data may say which line came from what in the stage above:
    ``{"lines": [[line, name], …]}``."""

    TRACE = "trace"
    """Aside: how a tracer walked over the user's instructions."""
    GUARDS = "guards"
    """Aside: what is checked before compiled code runs."""
    SYMBOLS = "symbols"
    """Aside: symbolic sizes."""
    REWRITTEN = "rewritten"
    """Aside: the bytecode that calls compiled code; its data has ``functions``."""
    SPLITS = "splits"
    """Aside: a graph with the parts that it was cut into as its submodules."""
    PARTITION = "partition"
    """Aside: what the forward keeps for the backward."""
    FUSION = "fusion"
    """Aside: what was fused and why not."""
    MEMORY = "memory"
    """Aside: the memory plan."""
    TUNING = "tuning"
    """Aside: which choices autotuning timed for each operator; its data has ``operators``."""
    PHASES = "phases"
    """Aside: compile time by phase."""
    BINARY = "binary"
    """Aside: the facts of a compiled kernel."""
    PASSES = "passes"
    """Aside: an overview of a kernel's passes, made on demand."""
    VALUES = "values"
    """Aside: what the nodes computed."""
    DIVERGENCE = "divergence"
    """Aside: where compiled code computes another number."""
    FACTS = "facts"
    """Aside: any other text about a stage."""


class Part(Enum):
    """Which part of a training step a stage computes, where its kind alone says so."""

    ANY = ""
    """The id of the stage says it: ``…-backward``."""
    SHARED = "shared"
    """Forward and backward, before they are partitioned."""
    INFERENCE = "inference"
    FORWARD = "forward"
    BACKWARD = "backward"
    ACCUMULATED = "accumulated"
    """The backward of several graphs together, traced once more (compiled autograd)."""


@dataclass(frozen=True)
class StageGroup:
    """The part of the compiler that makes some kinds of stages: the heading below which lists show these.

    Args:
        title: For people.
        has_sides: The stages of the forward and those of the backward are below headings of their own.
    """

    title: str
    has_sides: bool = False


KERNEL_GROUP = StageGroup("Kernels")
"""Kernels, and what they are lowered to."""
OTHER_GROUP = StageGroup("Other")
"""What no part of the compiler made: times, values."""


@dataclass(frozen=True)
class StageKind:
    """One kind of stage.

    Args:
        name: Its name in ids, in the store and on the command line; unique over all pipelines that do not share the
            kind.
        title, short: For people; `short` is for narrow places and is the title where it is empty.
        language: The language ID of its text; empty if each stage has its own (kernels).
        group: The heading below which lists show it.  None: that of kernels for what is one or is below one, for
            anything else the title of the pipeline.
        rank: Where it is on the way down from source to machine code; stages of one rank are side by side. None: it is
            not on the way, but *aside*.
        aside: For a stage that is not on the way: the name of the stage beside which it is shown.
        names: Which tracing gave the nodes their names.  Steps between stages of the same tracing keep names.
        versions_as: The kind under which the versions of this graph after each pass are filed, if that is another kind.
        precedes_passes: Its text is from before the passes that change this graph; of other graphs it is from after
            them.
        phases: The phases of the compile (PyTorch's names) whose time is the time to make this stage.
        is_captured: The graph that was traced from the user's code.
        is_lowered: The graph that the code generator lowers: the last one.
        is_fused: A schedule whose nodes are groups of nodes of an earlier one.
        is_machine_code: Its lines are instructions, to be shown by a debugger's disassembly view.
        is_compared: Two runs are compared by it.
        takes_costs: FLOPs and bytes of the user's lines are read from this graph.
    """

    name: str
    title: str
    language: str
    role: Role
    rank: int | None = None
    short: str = ""
    group: StageGroup | None = None
    aside: str = ""
    part: Part = Part.ANY
    names: str = ""
    versions_as: str = ""
    precedes_passes: bool = False
    phases: tuple[str, ...] = ()
    is_captured: bool = False
    is_lowered: bool = False
    is_fused: bool = False
    is_machine_code: bool = False
    is_compared: bool = False
    takes_costs: bool = False

    @property
    def short_title(self) -> str:
        """The title for narrow places; the full one if there is no shorter one."""
        return self.short or self.title

    @property
    def is_graph(self) -> bool:
        """Whether the stage is an FX graph."""
        return self.role is Role.GRAPH

    @property
    def is_stepped(self) -> bool:
        """Whether a debugger walks through its parts."""
        return self.rank is not None or self.role in (Role.TRACE, Role.GUARDS, Role.REWRITTEN, Role.PASSES)

    @property
    def is_drawn(self) -> bool:
        """Whether the graph panel can show it."""
        return self.role in (Role.GRAPH, Role.SCHEDULE, Role.FUSION)
