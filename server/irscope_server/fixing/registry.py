"""All families of fixes: each module of `families` that has an attribute ``FAMILY``."""

from __future__ import annotations

import functools
import importlib
import pkgutil

from irscope_server.fixing import families
from irscope_server.fixing.model import Family


@functools.cache
def all_families() -> tuple[Family, ...]:
    """The families, by the name of their module."""
    found = []
    for module in sorted(one.name for one in pkgutil.iter_modules(families.__path__)):
        family = getattr(importlib.import_module(f"{families.__name__}.{module}"), "FAMILY", None)
        if isinstance(family, Family):
            found.append(family)
    return tuple(found)
