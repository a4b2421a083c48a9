"""Lower stages of a kernel that are made on request, not in the run.

``<kernel>/assembly``
    What the C++ compiler makes of a C++ kernel, with Inductor's own flags.
``<kernel>/sass``
    A Triton kernel's machine code, disassembled from the binary that the run kept.
``<kernel>/passes`` and ``<kernel>/ttgir/27-triton-licm``
    The MLIR passes of a Triton kernel, and its module after each of them that changed it.

Each is made once and then is in the store like any other stage.  What comes from the store is only ever
compiled or parsed, never executed: by the compilers of the interpreter that the caller names, in processes of their
own.  Nothing here imports torch or triton.
"""

from __future__ import annotations

from irscope.lowering import cpp, passes, sass
from irscope.lowering.tools import LoweringError as LoweringError
from irscope.pipelines.inductor.stages import (
    AMDGCN,
    ASSEMBLY,
    BINARY,
    LLIR,
    PASSES,
    SASS,
    TTGIR,
    TTIR,
    TTIR_UNOPTIMIZED,
)
from irscope.pipelines.registry import position, role_of, stage_kind
from irscope.protocol import Report, StageRef
from irscope.provenance import chain
from irscope.store.store import Store
from irscope.targets.catalogue import catalogue
from irscope.vocabulary.stages import Role

_WITH_PASSES = (TTIR.name, TTGIR.name, LLIR.name)


def made_on_demand(report: Report, stage: str) -> bool:
    """Whether there could be such a stage of a kernel of this run, though it may not be in the store yet."""
    return _split(report, stage) is not None


def could_be_made(report: Report) -> dict[str, list[StageRef]]:
    """By the id of a kernel's stage what could be made of it and is not in the store yet, in pipeline order.

    These have no size.
    """
    found: dict[str, list[StageRef]] = {}
    for compile in report.with_predictions:
        ids = {ref.id for ref in compile.stages}
        for kernel in compile.stages:
            for what in _possible(kernel, ids) if role_of(kernel.name) is Role.KERNEL else ():
                if (id := f"{kernel.id}/{what}") not in ids:
                    found.setdefault(kernel.id, []).append(StageRef(id, what, stage_kind(what).language, 0))
    return found


def _instructions(target: str) -> str:
    """The set of instructions of a target; empty for a kernel of the script's own.  Raises LoweringError for a target that
    is not known any more."""
    if not target:
        return ""
    try:
        return catalogue().named(target).architecture
    except LookupError as error:
        raise LoweringError(str(error.args[0])) from error


def make(store: Store, report: Report, stage: str, python: str) -> None:
    """Makes a stage that `made_on_demand` knows, and puts it into the store.

    Args:
        python: The interpreter whose torch or triton made the kernel.

    Raises LoweringError, whose message says what to do, if it cannot be made.
    """
    found = _split(report, stage)
    if found is None:
        raise LoweringError(f"No kernel of run {report.run} can have a stage {stage}.")
    compile, kernel, what = found
    run = report.run
    backward = chain.is_backward(kernel)
    if what == ASSEMBLY.name:
        text, lines = cpp.assembly_of(store.stage_text(run, kernel.id), python, _instructions(kernel.target))
        _put(store, run, compile, f"{kernel.id}/{what}", what, text, backward, _data(kernel, lines))
    elif what == SASS.name:
        text, lines = sass.sass_of(store, run, kernel.id, python)
        _put(store, run, compile, f"{kernel.id}/{what}", what, text, backward, _data(kernel, lines))
    else:
        overview, changed = passes.passes_of(store, run, kernel.id, python)
        with store.transaction():
            _put(store, run, compile, f"{kernel.id}/{what}", what, overview, backward, None)
            for step in changed:
                id = f"{kernel.id}/{step.pipeline}/{step.number:02}-{step.argument}"
                ref = StageRef(id, step.pipeline, TTIR.language, len(step.text), step.argument)
                # Before the stage that the passes lead to.
                order = position(step.pipeline, backward) - 1 + step.number / 1000
                store.put_stage(run, compile, ref, step.text, order, _data(kernel, step.lines))


def _data(kernel: StageRef, lines: list[tuple[int, int]]) -> dict[str, object]:
    return {"lines": lines, "source": kernel.id}


def _put(store: Store, run: str, compile: str, id: str, name: str, text: str, backward: bool, data: object) -> None:
    store.put_stage(
        run, compile, StageRef(id, name, stage_kind(name).language, len(text)), text, position(name, backward), data
    )


def _split(report: Report, stage: str) -> tuple[str, StageRef, str] | None:
    """The compile, its kernel and the kind of a stage's id."""
    for compile in report.with_predictions:
        ids = {ref.id for ref in compile.stages}
        for kernel in compile.stages:
            if role_of(kernel.name) is not Role.KERNEL or not stage.startswith(kernel.id + "/"):
                continue
            what, slash, _ = stage[len(kernel.id) + 1 :].partition("/")
            if slash and what in _WITH_PASSES:
                what = PASSES.name
            if what in _possible(kernel, ids):
                return compile.id, kernel, what
    return None


def _possible(kernel: StageRef, ids: set[str]) -> list[str]:
    """What can be made of a kernel; ``ids``: the stages of its compile."""
    possible = {
        PASSES.name: f"{kernel.id}/{TTIR_UNOPTIMIZED.name}" in ids,
        # A binary for an AMD GPU has its assembly beside it, which the run kept.
        SASS.name: f"{kernel.id}/{BINARY.name}" in ids and f"{kernel.id}/{AMDGCN.name}" not in ids,
        ASSEMBLY.name: kernel.language == "cpp",
    }
    return [what for what, can in possible.items() if can]
