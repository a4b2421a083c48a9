"""What a pipeline is: one road from a PyTorch program to machine code."""

from __future__ import annotations

from dataclasses import dataclass

from irscope.vocabulary.findings import FindingKind
from irscope.vocabulary.stages import StageKind


@dataclass(frozen=True)
class Pipeline:
    """The declaration of a pipeline, which needs neither torch nor the pipeline's compiler.

    Parameters
    ----------
    name
        In run requests, in the store and on the command line.
    title
        For people.
    stages
        Its kinds of stages, in the order of the pipeline; that is also the order in which a compile lists them.
        Provenance follows them by their roles and ranks, and by what `StageKind` says about names and data.
    findings
        Its kinds of findings that are not declared in `irscope.findings.kinds`.
    capture
        Its `irscope.capture.base.Capture` as ``module:Class``, which is imported in the run's process only.
    needs
        The packages beside torch that must be installed in the interpreter of the run, by the names to import.
    """

    name: str
    title: str
    stages: tuple[StageKind, ...]
    findings: tuple[FindingKind, ...] = ()
    capture: str = "irscope.capture.base:Capture"
    needs: tuple[str, ...] = ()
