"""Tests as the beginning of a run: ``python -m pytest NODE`` in this process.

This module is also the plugin of pytest that remembers which tests failed.  PYTEST_DONT_REWRITE
"""

from __future__ import annotations

import importlib.util
import os
import types
from collections.abc import Sequence
from typing import Any

from irscope.capture.hooks import Hook, Undo, replace_attribute
from irscope.source import overlay_of

_NAMED = 3
_failed: dict[str, str] = {}  # node id → the first line of what went wrong


def arguments(node: str, args: Sequence[str]) -> list[str]:
    """The command line of pytest.  A run looks into this process only, so tests are not spread over others."""
    here = ["-n0"] if importlib.util.find_spec("xdist") is not None else []
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
        4: "wrong usage, or there is no such test; what it printed says which",
        5: "no test was collected",
    }
    return f"pytest ended with exit code {code}: {meaning.get(code, 'what it printed says why')}"


def pytest_runtest_logreport(report: Any) -> None:
    if report.failed:
        _failed.setdefault(report.nodeid, _first_line(report))


def pytest_collectreport(report: Any) -> None:
    if report.failed:
        _failed.setdefault(report.nodeid, "it could not be collected")


def _first_line(report: Any) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(getattr(crash, "message", "")).split("\n")[0]


def _read_overlays(rewrite: types.ModuleType) -> Undo:
    """pytest reads test files by itself, to rewrite their asserts, and keeps what it compiled on disk; the compiled
    file belongs to the text on disk, so for an overlaid one none is read or written."""
    from pathlib import Path

    class OverlaidPath(type(Path())):  # type: ignore[misc]  # what Path() makes on this system
        def read_bytes(self) -> bytes:
            return (overlay_of(str(self)) or "").encode("utf-8", "surrogatepass")

    module: Any = rewrite
    rewrite_test, read_pyc, write_pyc = module._rewrite_test, module._read_pyc, module._write_pyc

    def overlaid_test(fn: Any, config: Any) -> Any:
        return rewrite_test(OverlaidPath(fn) if overlay_of(str(fn)) is not None else fn, config)

    def overlaid_pyc(source: Any, *args: Any, **kwargs: Any) -> Any:
        return None if overlay_of(os.fspath(source)) is not None else read_pyc(source, *args, **kwargs)

    def no_overlaid_pyc(state: Any, co: types.CodeType, *args: Any, **kwargs: Any) -> Any:
        return False if overlay_of(co.co_filename) is not None else write_pyc(state, co, *args, **kwargs)

    undo = [
        replace_attribute(rewrite, "_rewrite_test", overlaid_test),
        replace_attribute(rewrite, "_read_pyc", overlaid_pyc),
        replace_attribute(rewrite, "_write_pyc", no_overlaid_pyc),
    ]

    def undo_all() -> None:
        for one in undo:
            one()

    return undo_all


OVERLAYS = Hook(
    what="the unsaved text of test files: the texts on disk were tested",
    module="_pytest.assertion.rewrite",
    versions="2.13 (with pytest 9.0)",
    apply=_read_overlays,
)
