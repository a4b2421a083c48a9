"""All pipelines and their kinds of stages.

A pipeline is a module or package in this folder with an attribute ``PIPELINE``.  More of them come from the files that
the environment variable ``IRSCOPE_PIPELINES`` lists, separated as ``PATH`` is; only the user's own environment can set
it, never a workspace.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import pkgutil
import sys
import types
from collections.abc import Iterator

import irscope.pipelines
from irscope.pipelines.base import Pipeline
from irscope.protocol import DEFAULT_PIPELINE
from irscope.vocabulary.stages import KERNEL_GROUP, OTHER_GROUP, Role, StageGroup, StageKind

VARIABLE = "IRSCOPE_PIPELINES"


@functools.cache
def pipelines() -> dict[str, Pipeline]:
    """All pipelines by name: the usual one first, and last those that irscope only knows.

    Raises ValueError for two of one name, or two kinds of stages of one name that differ.
    """
    found: dict[str, Pipeline] = {}
    for module in _modules():
        pipeline = getattr(module, "PIPELINE", None)
        if isinstance(pipeline, Pipeline):
            if pipeline.name in found:
                raise ValueError(f"two pipelines are called '{pipeline.name}'")
            found[pipeline.name] = pipeline
    ordered = sorted(found.values(), key=lambda one: (bool(one.unsupported), one.name != DEFAULT_PIPELINE))
    return {pipeline.name: pipeline for pipeline in ordered}


def pipeline_named(name: str) -> Pipeline:
    """The pipeline of that name.

    Raises LookupError with a message for the user if there is none, or if it is one that irscope only knows.
    """
    known = pipelines()
    if name not in known:
        runnable = (pipeline.name for pipeline in known.values() if not pipeline.unsupported)
        raise LookupError(f"Unknown pipeline: {name!r}. Known: {', '.join(runnable)}.")
    if known[name].unsupported:
        raise LookupError(f"irscope cannot run the pipeline {name}: {known[name].unsupported}")
    return known[name]


@functools.cache
def stage_kinds() -> dict[str, StageKind]:
    """All kinds of stages by name, in an order that is each pipeline's own.

    What a pipeline has between, or before, kinds that it shares with another one comes there.
    """
    found: dict[str, StageKind] = {}
    order: list[str] = []
    for pipeline in pipelines().values():
        shares = any(kind.name in found for kind in pipeline.stages)
        at = 0 if shares else len(order)
        for kind in pipeline.stages:
            if kind.name not in found:
                found[kind.name] = kind
                order.insert(at, kind.name)
            elif found[kind.name] != kind:
                raise ValueError(f"two pipelines declare the stage '{kind.name}' in different ways")
            at = order.index(kind.name) + 1
    return {name: found[name] for name in order}


@functools.lru_cache(maxsize=1024)
def stage_kind(name: str) -> StageKind:
    """The kind of that name; for an unknown one, such as from a newer store, a text that is aside."""
    known = stage_kinds().get(name)
    return known or StageKind(name, name.replace("-", " ").capitalize(), "plaintext", Role.FACTS)


@functools.lru_cache(maxsize=1024)
def group_of(name: str) -> StageGroup:
    """The heading below which lists show stages of that name."""
    kind = stage_kind(name)
    if kind.group is not None:
        return kind.group
    if kind.role in _BELOW_CODE:
        return KERNEL_GROUP
    return next((StageGroup(one.title) for one in pipelines().values() if kind in one.stages), OTHER_GROUP)


@functools.cache
def group_position(group: StageGroup) -> int:
    """Sorts groups by the first of their kinds of stages; kernels, which several pipelines have, come after all others, and
    the group of what is left comes last."""
    kinds = list(stage_kinds())
    if group in (KERNEL_GROUP, OTHER_GROUP):
        return len(kinds) + (group == OTHER_GROUP)
    return next((at for at, name in enumerate(kinds) if group_of(name) == group), len(kinds) + 1)


def role_of(name: str) -> Role:
    """The role of the kind of that name."""
    return stage_kind(name).role


@functools.lru_cache(maxsize=1024)
def calls_kernels(name: str) -> bool:
    """Whether a graph of that name is itself what calls the kernels, as that of TVM's virtual machine: its pipeline makes
    no code of it, and what computes nothing that is returned runs, too."""
    if not stage_kind(name).is_lowered:
        return False
    of = [one.stages for one in pipelines().values() if any(kind.name == name for kind in one.stages)]
    return all(kind.role is not Role.CODE for stages in of for kind in stages)


@functools.cache
def names_with(*roles: Role) -> frozenset[str]:
    """The names of all kinds that have one of these roles."""
    return frozenset(kind.name for kind in stage_kinds().values() if kind.role in roles)


def position(name: str, backward: bool) -> int:
    """Sorts the stages of a compile along its pipeline, all of the backward's lowering after the forward's."""
    order = list(stage_kinds()).index(name)
    return order + (_BACKWARD if backward else 0)


_BACKWARD = 1000
_BELOW_CODE = (Role.KERNEL, Role.LOWERED, Role.PASSES, Role.BINARY)


def _modules() -> Iterator[types.ModuleType]:
    for found in pkgutil.iter_modules(irscope.pipelines.__path__):
        if found.ispkg or found.name not in ("base", "registry"):
            yield importlib.import_module(f"{irscope.pipelines.__name__}.{found.name}")
    for path in filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)):
        yield _load(path)


def _load(path: str) -> types.ModuleType:
    """A module from a file outside this package.  Raises ImportError if there is none."""
    stem = os.path.splitext(os.path.basename(path))[0]
    name = f"irscope_pipeline_{stem}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise ImportError(f"{path} ({VARIABLE}) is not a Python file")
        module = importlib.util.module_from_spec(spec)
        vars(module)["__builtins__"] = globals()["__builtins__"]  # with them it imports irscope as this module does
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]
