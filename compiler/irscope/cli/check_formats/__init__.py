"""How ``irscope check`` writes what it found: one module for each format, with a function ``written``."""

from __future__ import annotations

import importlib

from irscope.cli.checked import Check

FORMATS = {
    "text": "for people",
    "json": "the reports as data (docs/json.md)",
    "sarif": "SARIF 2.1.0, for code scanning",
    "github": "workflow commands: annotations in a pull request on GitHub",
    "junit": "JUnit XML, for test reports",
}
"""By name of the module below this package."""
WITH_EDITS = ("json", "sarif")
"""The formats that have the edits of fixes."""


def written(name: str, check: Check) -> str:
    """The whole text of a check in a format, with a new line at its end."""
    text: str = importlib.import_module(f"{__name__}.{name}").written(check)
    return text
