"""Runs a script with other defaults: settings of PyTorch's compiler, and decompositions that are left out.

A comparison of two versions confirms a cause in this way.  A value is set right after the module was imported, before the
script can set its own, so the script's settings win.
"""

from __future__ import annotations

import ast
import functools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from irscope.internals.hooks import Hook, Undo, replace_attribute, undo_all

_VERSIONS = "2.9 to 2.15"


def hooks(settings: Mapping[str, str], without: Sequence[str]) -> list[Hook]:
    """What changes the defaults.

    Args:
        settings: By full name (``torch._inductor.config.triton.cudagraphs``) the value as a Python literal.
        without: Operations (``aten.gelu``) whose decompositions Inductor does not have.
    """
    by_module: dict[str, dict[str, Any]] = defaultdict(dict)
    for name, text in settings.items():
        module, _, key = name.partition("onfig.")
        by_module[f"{module}onfig"][key] = ast.literal_eval(text)
    found = [
        Hook(f"the settings of {module}", module, _VERSIONS, functools.partial(_set, values))
        for module, values in by_module.items()
    ]
    if without:
        found.append(
            Hook(
                f"a run without the decompositions of {', '.join(without)}",
                "torch._inductor.decomposition",
                _VERSIONS,
                lambda module: _leave_out(module, frozenset(without)),
            )
        )
    return found


def _set(values: Mapping[str, Any], config: Any) -> Undo:
    """Raises AttributeError if this version does not have one of the settings."""
    steps: list[Undo] = []
    try:
        for name, value in values.items():
            *path, last = name.split(".")
            holder = config
            for part in path:
                holder = getattr(holder, part)
            before = getattr(holder, last)
            steps.append(replace_attribute(holder, last, type(before)(value) if isinstance(before, set) else value))
    except BaseException:
        undo_all(steps)()
        raise
    return undo_all(steps)


def _leave_out(module: Any, names: frozenset[str]) -> Undo:
    table = module.decompositions
    gone = {one: table.pop(one) for one in list(table) if str(getattr(one, "overloadpacket", one)) in names}
    return lambda: table.update(gone)
