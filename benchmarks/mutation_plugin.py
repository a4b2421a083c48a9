"""A plugin of pytest, for mutations.py: writes how each test ended, and tells coverage which test runs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# Read before conftest.py cleans the environment.
REPORT = os.environ["MUTATION_REPORT"]
tests: dict[str, list[Any]] = {}
"""How a test ended, and its seconds, by its node ID."""
running = ""
"""The node ID of the test that runs."""


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Lets coverage file the lines under the test."""
    global running
    running = item.nodeid
    switch(running)
    try:
        return (yield)
    finally:
        switch("")


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any) -> Iterator[None]:
    """What a fixture does for several tests is filed under none of them."""
    if fixturedef.scope == "function":
        return (yield)
    switch("")
    try:
        return (yield)
    finally:
        switch(running)


def switch(context: str) -> None:
    coverage: Any = sys.modules.get("coverage")
    current = coverage and coverage.Coverage.current()
    if current is not None:
        current.switch_context(context)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """A file that cannot be imported is a test that fails."""
    if report.failed:
        tests[report.nodeid] = ["failed", 0.0]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """The worst outcome of set-up, call and teardown counts."""
    kept = tests.setdefault(report.nodeid, ["passed", 0.0])
    if report.failed or (report.skipped and kept[0] == "passed"):
        kept[0] = report.outcome
    kept[1] = round(kept[1] + report.duration, 3)


def pytest_sessionfinish() -> None:
    """Writes the report."""
    Path(REPORT).write_text(json.dumps(tests), encoding="utf-8")
