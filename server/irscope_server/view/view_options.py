"""What the user says about findings, beside the comments in the source: by options, or else as VS Code's settings say."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from irscope.findings.control import hidden_because, read_baseline
from irscope.protocol import Lane, Report
from irscope.usercode.reading import read_bounded
from irscope.usercode.source import use_overlays
from irscope.vocabulary.visible import printable

from irscope_server.base.settings import SECTION, read_settings
from irscope_server.panels.findings import Hidden
from irscope_server.running.launch import without_comments

SETTINGS = os.path.join(".vscode", "settings.json")


@dataclass(frozen=True)
class Wishes:
    """Which findings the user wants to see, and how severe they are."""

    severities: Mapping[str, str] = field(default_factory=dict)
    """By code or kind (`irscope.findings.control.controlled`)."""
    baseline: Mapping[str, int] = field(default_factory=dict)
    """Findings that are known (`irscope.findings.control.read_baseline`)."""

    def hidden(self, report: Report, lane: Lane, texts: Mapping[str, list[str]]) -> Hidden:
        """Why findings are not shown in the source, by their cause."""
        use_overlays({file: "\n".join(lines) for file, lines in texts.items()})
        try:
            return hidden_because(report, self.severities, self.baseline)
        finally:
            use_overlays({})


def wishes_of(severities: Sequence[tuple[str, str]], baseline: str | None, folder: str) -> Wishes:
    """The options; for those that are not set, the settings of a workspace folder.

    Raises LookupError if the baseline that was named is invalid; one that is only in the settings is reported on
    stderr.
    """
    settings, complaints = read_settings(_settings_in(os.path.join(folder, SETTINGS)))
    for complaint in complaints:
        print(f"irscope view: {SETTINGS}: {complaint}", file=sys.stderr)
    wanted = dict(severities) or settings.severity
    if baseline is not None:
        return Wishes(wanted, read_baseline(baseline))
    if not settings.baseline:
        return Wishes(wanted)
    try:
        return Wishes(wanted, read_baseline(os.path.join(folder, os.path.expanduser(settings.baseline))))
    except LookupError as error:
        print(printable(f"irscope view: {error.args[0]}"), file=sys.stderr)  # it names the file as the settings do
        return Wishes(wanted)


def _settings_in(path: str) -> dict[str, Any]:
    """The settings about findings of a file of VS Code's; empty if it cannot be read."""
    try:
        found = json.loads(without_comments(read_bounded(path).decode("utf-8")))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {name: found[f"{SECTION}.{name}"] for name in ("severity", "baseline") if f"{SECTION}.{name}" in found}
