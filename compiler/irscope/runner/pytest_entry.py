"""Tests as the beginning of a run: ``python -m pytest NODE`` in this process.

This module is also the plugin of pytest that remembers which tests failed.  PYTEST_DONT_REWRITE
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence
from typing import Any

_NAMED = 3
_failed: dict[str, str] = {}  # node id → the first line of what went wrong


def arguments(node: str, args: Sequence[str]) -> list[str]:
    """The command line of pytest.  A run looks into this process only, so tests are not spread over others."""
    is_loaded = not os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD") and importlib.util.find_spec("xdist") is not None
    here = ["-n0"] if is_loaded else []
    return ["-p", __name__, *here, node, *args]


def describe(stop: SystemExit) -> str:
    """What an exit code of pytest means."""
    code = int(stop.code) if isinstance(stop.code, int) else 1
    if _failed:
        named = [f"{node} ({why})" if why else node for node, why in list(_failed.items())[:_NAMED]]
        more = f" and {len(_failed) - _NAMED} more" if len(_failed) > _NAMED else ""
        return f"pytest: {len(_failed)} failed: {', '.join(named)}{more}"
    meaning = {
        2: "it was interrupted",
        3: "an error inside pytest",
        4: "wrong usage, or no such test; its output says which",
        5: "no test was collected",
    }
    return f"pytest ended with exit code {code}: {meaning.get(code, 'its output says why')}"


def pytest_runtest_logreport(report: Any) -> None:
    """Note the first failure of each test."""
    if report.failed:
        _failed.setdefault(report.nodeid, _first_line(report))


def pytest_collectreport(report: Any) -> None:
    """Note what could not be collected."""
    if report.failed:
        _failed.setdefault(report.nodeid, "it could not be collected")


def _first_line(report: Any) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(getattr(crash, "message", "")).split("\n")[0]
