"""The targets of a run: which devices it is to predict kernels for."""

from __future__ import annotations

import os

from irscope.pipelines.base import Pipeline
from irscope.vocabulary.lanes import Lane

_MOST_CONFIGS = 10_000


def targets_of(given: str, pipeline: Pipeline, lane: Lane) -> tuple[str, ...]:
    """The names of ``h100,a100``; none of an empty text.  Raises LookupError for one that the pipeline generates no code
    for."""
    names = [name.strip() for name in given.split(",") if name.strip()]
    if names and lane is not Lane.DEEP:
        raise LookupError("--target needs the deep lane, which generates code: leave out --lane fast.")
    return checked(names, pipeline)


def tuned_of(file: str, targets: str) -> str:
    """The absolute path of the store whose choices by timing predictions take; empty without one.

    Raises LookupError if there is no such file, or no prediction.
    """
    if file and not targets:
        raise LookupError(
            "--tuned needs --target: it names the choices by timing of a device that kernels are predicted for."
        )
    if file and not os.path.isfile(file):
        raise LookupError(f"File not found: {file}. --tuned names the run store of a run on the real device.")
    return os.path.abspath(file) if file else ""


def configs_of(given: str, targets: str) -> dict[str, int]:
    """The numbers of ``3`` or ``mm=3,triton_per_fused_sum_0=2`` by name.  Raises LookupError."""
    if given and not targets:
        raise LookupError("--config needs --target: it chooses among what a device would time.")
    found: dict[str, int] = {}
    for part in filter(None, given.split(",")):
        name, _, number = part.rpartition("=")
        if not number.strip().isdecimal() or not 1 <= int(number) <= _MOST_CONFIGS:
            raise LookupError(
                f"--config takes a number from `irscope show --autotuning`, as in 3 or mm=3,bmm=2, not {part!r}."
            )
        found[name.strip()] = int(number)
    return found


def fake_of(wanted: bool, targets: str) -> bool:
    """Whether tensors have no storage.  Raises LookupError if no target is named, since only predictions are compiled."""
    if wanted and not targets:
        raise LookupError("--fake needs --target: on tensors without storage only predictions are compiled.")
    return wanted


def machine_code_of(wanted: bool, targets: str) -> bool:
    """Whether the kernels of targets are compiled.  Raises LookupError if they are not to be, and no target is named."""
    if not wanted and not targets:
        raise LookupError("--no-machine-code needs --target: it is about the kernels of predictions.")
    return wanted


def checked(names: list[str] | tuple[str, ...], pipeline: Pipeline) -> tuple[str, ...]:
    """The names of targets, each once.  Raises LookupError for one that the pipeline generates no code for."""
    if not names:
        return ()
    from irscope.targets.catalogue import catalogue  # here: most runs have no target, and it would delay their script
    from irscope.targets.properties import missing_figures
    from irscope.vocabulary.suggestions import listed

    known = catalogue()
    chosen = [known.named(name) for name in names]
    for target in chosen:
        if target.kind not in pipeline.targets:
            able = [each.name for each in known.targets.values() if each.kind in pipeline.targets]
            there = f"It does for {listed(able)}." if able else "It does for no target yet; --pipeline inductor does."
            raise LookupError(f"The pipeline {pipeline.name} does not generate code for {target.name}. {there}")
        if missing := missing_figures(target):
            raise LookupError(
                f"No kernels are predicted for {target.name}: its figures {listed(missing)} are missing. Add them to its "
                "file, which the variable IRSCOPE_TARGETS names (docs/targets.md)."
            )
    return tuple(dict.fromkeys(target.name for target in chosen))
