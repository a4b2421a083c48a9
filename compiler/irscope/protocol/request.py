"""What starts a run."""

from __future__ import annotations

import enum
from dataclasses import field

from irscope.vocabulary.lanes import DEFAULT_PIPELINE, Lane
from irscope.vocabulary.limits import Budget
from irscope.vocabulary.records import dataclass

EAGER = "eager"
"""The backend that executes a graph as it is."""


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
    MODEL = "model"
    """A model that an expression makes in the namespace of a file, compiled and called once (`ModelCall`)."""

    @property
    def is_file(self) -> bool:
        """Whether it is named by a path; its folder is then the first of ``sys.path``."""
        return self in (EntryKind.SCRIPT, EntryKind.NOTEBOOK, EntryKind.MODEL)


@dataclass(frozen=True)
class ModelCall:
    """A model to compile and the inputs to call it with, which only the user's own command line can name.

    Args:
        model, inputs: Python expressions.
        inputs_file: Absolute path of the file in whose namespace ``inputs`` is evaluated; that of ``model`` is the
            run's script.
    """

    model: str
    inputs: str
    inputs_file: str


GIVEN = "values on the inputs that were given"
"""The `CaptureGap.what` where `ValuesRequest.inputs` do not fit a graph."""


@dataclass(frozen=True)
class ValuesRequest:
    """What a value run keeps of the numbers that flow through compiled graphs; see `irscope.values`.

    Args:
        compile: Only in this compile; empty: in each.
        stage: The graph stage whose values are kept, by name (``forward-graph``); empty: what Inductor got, forward and
            backward; ``all``: every stage whose graph takes the inputs of the compiled one.
        call: Which call of each compiled graph, from 1.
        statistics, divergence: Keep the values of each node; compare compiled code with its graph.
        keep_bytes: Bytes of elements of tensors that are kept, at most.
        inputs: Path of a file that gives inputs in place of those of the call where the graph is run by itself: a
            Python file that defines ``inputs``, or what ``torch.save`` wrote (`irscope.values.run.inputs`).  Empty: the
            inputs of the call.
        watch: Look at what leaves the compiled graphs at every call, and keep nothing until a number is not finite.
        replay_bytes: Bytes of the copies from which the last steps are run again, at most.
        against: Compare every call, too: with ``eager`` or with ``float64``.
    """

    compile: str = ""
    stage: str = ""
    call: int = 1
    statistics: bool = True
    divergence: bool = False
    keep_bytes: int = 512 * 1024 * 1024
    inputs: str = ""
    watch: bool = False
    replay_bytes: int = 2 * 1024**3
    against: str = ""


@dataclass(frozen=True)
class EarlierStage:
    """A stage of an earlier run of the same script.

    Args:
        file, function, number: Which compile it is of: the number of this function in its run, from 0.
        part: The last part of its ID.
        text, data: As stored; the data is JSON text.
    """

    file: str
    function: str
    number: int
    part: str
    text: str
    data: str


@dataclass(frozen=True)
class Choices:
    """What a run on a real device has chosen by timing, by key; see `irscope.internals.tuning_hooks.Replay`."""

    templates: dict[str, dict[str, float | None]]
    paddings: dict[str, bool]

    def template(self, key: str) -> dict[str, float | None] | None:
        """Times in seconds by option."""
        return self.templates.get(key)

    def padding(self, key: str) -> bool | None:
        """Whether the device pads."""
        return self.paddings.get(key)


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How a run is made: what the driver (`irscope.driver.driver.RunSpec`) asks of its process."""

    overlays: dict[str, str] = field(default_factory=dict)
    """Text to be used in place of what is on disk, by absolute path: the editor's unsaved buffers."""
    entry: EntryKind = EntryKind.SCRIPT
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
    only_backend: str | None = None
    """In the fast lane: what takes all graphs, whichever backend the script asks for."""
    aot: bool = False
    """In the fast lane: AOTAutograd takes all graphs of backends that use it, not only those for which it is known to
    matter."""
    without_compile: bool = False
    """In the fast lane: Dynamo compiles nothing, as with ``TORCH_COMPILE_DISABLE=1``."""
    model: ModelCall | None = None
    """What an entry of the kind `EntryKind.MODEL` compiles and calls."""
    targets: tuple[str, ...] = ()
    """Names of devices that code is generated for beside the script's own (`irscope.targets.catalogue`)."""
    rounds: str = ""
    """A folder in which the compiled programs are to be timed on request after the script has ended
    (`irscope.runner.rounds`); empty: they are not."""
    profile: int = 0
    """How many calls of each compiled program are measured with PyTorch's profiler after the script has ended, into the
    folder of ``rounds`` (`irscope.runner.profiling`); 0: none."""
    steps: int = 0
    """With ``rounds``: steps of the script itself are timed while it runs (`irscope.runner.steps`).  With ``evidence``, or
    ``profile``: the script ends after so many steps.  A step begins with a call of the program that is called first.  0: neither."""
    memory: bool = False
    """With ``profile``: whether the memory of a step is noted, too (`irscope.runner.step_memory`)."""
    world: int = 0
    """How many ranks the job has of which this run is one; 0: any other run."""
    rank: int = 0
    """Which of them it is."""
    local_rank: int = 0
    """Which of those on its machine it is."""
    local_world: int = 0
    """How many of them its machine has."""
    fake_group: bool = False
    """Whether the other ranks do not exist: PyTorch's fake process group stands in for them, and the CPU for CUDA."""
    evidence: str = ""
    """A folder for what the script computes, to be compared with what another run has left there
    (`irscope.runner.evidence`); empty: neither."""
    trial: bool = False
    """Whether it must change nothing outside of that folder, or of the folder of ``rounds`` (`irscope.runner.trial`)."""
    tuned: str = ""
    """Path of a run store: what a device of ``targets`` has chosen by timing there is chosen again for it; empty: none."""
    configs: dict[str, int] = field(default_factory=dict)
    """By the name of an operator or kernel which of its configurations targets take, counted from 1; empty name: of all."""
    fake: bool = False
    """Whether tensors have shapes and no storage (`irscope.internals.fake_run`)."""
    machine_code: bool = True
    """Whether the kernels of ``targets`` are compiled down to machine code."""
    settings: dict[str, str] = field(default_factory=dict)
    """Other defaults of PyTorch's settings: full names with Python literals (`irscope.internals.flips`)."""
    without: tuple[str, ...] = ()
    """Operations whose decompositions Inductor does not have (`irscope.internals.flips`)."""
    code: dict[str, str] = field(default_factory=dict)
    """Texts of functions of PyTorch's compiler that take the place of its own, by ``module:function``; an empty text
    takes a method away (`irscope.internals.older_code`)."""


@dataclass(frozen=True)
class RunRequest(RunOptions):
    """What is asked of a run's process, as the one JSON argument that it gets."""

    run: str
    script: str
    """Absolute path of the script; for an entry that is not one what the store calls it: ``-m package.module``."""
    args: tuple[str, ...]
    lane: Lane
    store: str
    """Path of the run store, beside which a value run keeps elements of tensors.  The run's process never opens it."""
    argv0: str = ""
    """The script as it was typed, which is what it sees as ``sys.argv[0]``; empty: the absolute path."""
    target: str = ""
    """The dotted name or the node id, for an entry that is not a script."""
    children: str = ""
    """The address at which the driver waits for the processes that the script starts; empty: it does not."""
    is_child: bool = False
    """Whether this is one of these processes."""
    choices: dict[str, Choices] = field(default_factory=dict)
    """What was chosen in ``tuned``, by the name of the target; without those of which that store has no run."""
    earlier: tuple[EarlierStage, ...] = ()
    """Stages of earlier runs that the pipeline's capture compares with, the newest run first."""
