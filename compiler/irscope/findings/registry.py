"""Every kind of finding: those of the modules of `irscope.findings.kinds`, which no list names, and of pipelines."""

from __future__ import annotations

import functools
import importlib
import pkgutil
import types
from collections.abc import Iterator, Mapping

from irscope.findings import kinds as package
from irscope.pipelines.registry import pipelines
from irscope.protocol import Severity
from irscope.vocabulary.findings import FindingKind


@functools.cache
def modules() -> tuple[types.ModuleType, ...]:
    """The modules that declare kinds or detect them, by name."""
    names = sorted(module.name for module in pkgutil.iter_modules(package.__path__))
    return tuple(importlib.import_module(f"{package.__name__}.{name}") for name in names)


@functools.cache
def all_kinds() -> Mapping[str, FindingKind]:
    """The kinds by id, in the order of lists.

    Raises ValueError if two declarations have the same id.
    """
    found: dict[str, FindingKind] = {}
    for kind in _declared():
        if found.setdefault(kind.id, kind) is not kind:
            raise ValueError(f"two kinds of finding are called {kind.id}")
    return {kind.id: kind for kind in sorted(found.values(), key=lambda kind: (kind.order, kind.id))}


def _declared() -> Iterator[FindingKind]:
    for module in modules():
        yield from (value for value in vars(module).values() if isinstance(value, FindingKind))
    for pipeline in pipelines().values():
        yield from pipeline.findings


def kind_of(id: str) -> FindingKind:
    """A kind by its id; for one that is not declared, as in a store of a newer version, what its id says."""
    if (known := all_kinds().get(id)) is not None:
        return known
    words = id.replace("-", " ")
    return FindingKind(id, words.capitalize(), (words, f"{words}s"), (), Severity.INFORMATION)
