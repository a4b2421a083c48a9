"""All rules: each module of `rules` that has an attribute ``RULE``."""

from __future__ import annotations

import functools
import importlib
import pkgutil

from irscope.fixing import rules
from irscope.fixing.model import Rule


@functools.cache
def all_rules() -> tuple[Rule, ...]:
    """The rules, by the names of their modules."""
    names = sorted(module.name for module in pkgutil.iter_modules(rules.__path__))
    modules = [importlib.import_module(f"{rules.__name__}.{name}") for name in names]
    return tuple(module.RULE for module in modules if isinstance(getattr(module, "RULE", None), Rule))
