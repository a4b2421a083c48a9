"""What a pipeline is: one road from a PyTorch program to machine code."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from irscope.vocabulary.findings import FindingKind
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.stages import StageKind


@dataclass(frozen=True)
class Package:
    """A package that must be installed in the interpreter of the run.

    Args:
        module: The name to import: ``onnxruntime``, ``my_compiler.driver``.
        requirement: What pip installs, with versions where only some fit: ``apache-tvm>=0.27``.  Empty: the module's
            first name.
    """

    module: str
    requirement: str = ""

    @property
    def to_install(self) -> str:
        """What pip installs."""
        return self.requirement or self.module.partition(".")[0]


@dataclass(frozen=True)
class Variants:
    """What a pipeline can use of what packages have registered, such as the backends of Dynamo.

    Args:
        noun: What one is called.
        installed: A Python program that prints the name of each that is installed, one a line.  It runs in the user's
            interpreter. The trial of the pipeline then runs once for each, with the name as its argument.
    """

    noun: str
    installed: str


@dataclass(frozen=True)
class Pipeline:
    """The declaration of a pipeline, which needs neither torch nor the pipeline's compiler.

    Args:
        name: In run requests, in the store and on the command line.
        title: For people.
        stages: Its kinds of stages, in the order of the pipeline; that is also the order in which a compile lists them.
            Provenance follows them by their roles and ranks, and by what `StageKind` says about names and data.
        findings: Its kinds of findings that are not declared in `irscope.findings.kinds`.
        capture: Its `irscope.capture.base.Capture` as ``module:Class``, which is imported in the run's process only.
            Those of irscope's pipelines are in `irscope.pipeline_captures`.
        compares: Kinds of stages that its capture compares with those of earlier runs (`RunRequest.earlier`).
        needs: The packages beside torch that must be installed in the interpreter of the run.
        torch: The version of PyTorch that it needs, as pip writes it, where not every version fits.  Then it has a
            separate environment, which ``irscope env create`` makes.
        megabytes: How much pip downloads for it, roughly; 0: unknown.
        trial: A Python program that compiles something small with it and ends with exit code 0, or with an error whose
            last line says why not.  `irscope.driver.availability` runs it in the user's interpreter: that a package can
            be imported does not mean that it works.  Empty: the packages are all that it needs.
        variants: What it can use from the user's packages; each is tried separately.  None: nothing.
        targets: Kinds of targets (`irscope.targets.catalogue.KINDS`) that it generates code for beside the script's own
            device.
        unsupported: Why irscope cannot run it, of a system that irscope only knows; empty: it can.
        shows: What such a system would show.
    """

    name: str
    title: str
    stages: tuple[StageKind, ...]
    findings: tuple[FindingKind, ...] = ()
    capture: str = "irscope.capture.base:Capture"
    compares: tuple[str, ...] = ()
    needs: tuple[Package, ...] = ()
    torch: str = ""
    megabytes: int = 0
    trial: str = ""
    variants: Variants | None = None
    targets: tuple[str, ...] = ()
    unsupported: str = ""
    shows: str = ""


def install_command(pipeline: Pipeline, python: str, packages: Iterable[Package]) -> str:
    """The command that gets what a pipeline lacks in an interpreter."""
    return f"irscope env create {pipeline.name}" if pipeline.torch else pip_command(python, packages)


def pip_command(python: str, packages: Iterable[Package]) -> str:
    """The command that installs packages in an interpreter, as one types it in a shell."""
    requirements = dict.fromkeys(package.to_install for package in packages)
    return shlex.join([python, "-m", "pip", "install", *requirements])
