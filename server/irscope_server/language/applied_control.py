"""What the user says about findings: ignore comments, severities and a baseline, applied to what runs found.

The rules are `irscope.findings.control`'s, as on the command line; here they get the texts as they ran (the open buffers
among them), since a finding's line is a line of those.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence

from irscope.findings.control import controlled, hidden_because, read_baseline
from irscope.protocol import Lane, Report
from irscope.usercode.source import use_overlays

from irscope_server.base.settings import Settings
from irscope_server.base.texts import FileKey, keyed
from irscope_server.running.results import files_of

log = logging.getLogger(__name__)

Texts = Mapping[FileKey, Sequence[str]]
"""Lines of files."""


class Controls:
    """Applies the user's wishes to reports.  Belongs to the event loop.

    Args:
        settings_of: The settings of a script's folder, by the script's path.
        folder_of: The workspace folder of a script, where relative paths of settings start.
        lines_of: The lines of a file as it is now, for those that a run did not bring along.
        complain: Called with a message for the user, when a baseline cannot be read.
    """

    def __init__(
        self,
        settings_of: Callable[[str], Settings],
        folder_of: Callable[[str], str],
        lines_of: Callable[[str], Sequence[str]],
        complain: Callable[[str], None],
    ) -> None:
        self._settings_of = settings_of
        self._folder_of = folder_of
        self._lines_of = lines_of
        self._complain = complain
        self._baselines: dict[str, tuple[int, Mapping[str, int]]] = {}

    def __call__(self, report: Report, lane: Lane, texts: Texts) -> Report:
        """The report as the user wants to see it."""
        if not report.findings and not report.compiles:
            return report
        settings = self._settings_of(report.script)
        baseline = self._baseline(settings.baseline, report.script)
        lines = self._lines(report, texts)
        if not settings.severity and not baseline and not any(_has_comment(text) for text in lines.values()):
            return report
        use_overlays({key: "\n".join(text) for key, text in lines.items()})
        try:
            return controlled(report, lane, settings.severity, baseline)
        finally:
            use_overlays({})

    def hidden(self, report: Report, lane: Lane, texts: Mapping[str, list[str]]) -> dict[tuple[object, ...], str]:
        """Why findings of a report are not shown (`irscope.findings.control.hidden_because`); the texts by path."""
        settings = self._settings_of(report.script)
        use_overlays({key: "\n".join(text) for key, text in self._lines(report, keyed(texts)).items()})
        try:
            return hidden_because(report, settings.severity, self._baseline(settings.baseline, report.script))
        finally:
            use_overlays({})

    def severities(self, script: str) -> Mapping[str, str]:
        """The severities that the user wants for a script, by code or kind."""
        return self._settings_of(script).severity

    def _lines(self, report: Report, texts: Texts) -> dict[FileKey, Sequence[str]]:
        return {key: texts.get(key) or self._lines_of(file) for key, file in files_of(report).items()}

    def _baseline(self, setting: str, script: str) -> Mapping[str, int]:
        if not setting:
            return {}
        path = os.path.join(self._folder_of(script), os.path.expanduser(setting))
        try:
            changed = os.stat(path).st_mtime_ns
        except OSError:
            changed = -1
        kept = self._baselines.get(path)
        if kept is None or kept[0] != changed:
            try:
                kept = (changed, read_baseline(path))
            except LookupError as error:
                self._complain(str(error.args[0]))
                kept = (changed, {})
            self._baselines[path] = kept
        return kept[1]


def _has_comment(lines: Sequence[str]) -> bool:
    return any("irscope:" in line for line in lines)
