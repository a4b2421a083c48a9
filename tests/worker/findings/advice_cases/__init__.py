"""Small functions that break the graph, one each, by theme; which of their options are proven by applying them."""

from __future__ import annotations

import importlib
import pkgutil

from advice_cases.table import CASES, BreakCase

__all__ = ["CASES", "BreakCase"]

for _theme in sorted(module.name for module in pkgutil.iter_modules(__path__)):
    importlib.import_module(f"{__name__}.{_theme}")
