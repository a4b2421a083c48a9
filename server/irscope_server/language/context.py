"""What the features of a Python document need besides the editor."""

from __future__ import annotations

from typing import Protocol

from irscope_server.base.context import EditorContext
from irscope_server.language.line_facts import LineFactsOfRuns
from irscope_server.language.views import Views
from irscope_server.running.measured import Profiles
from irscope_server.running.plans import Planner
from irscope_server.running.proofs import Proofs
from irscope_server.running.results import Results
from irscope_server.running.runs import Runs


class SourceContext(EditorContext, Protocol):
    """The editor, with what runs found in its documents."""

    @property
    def planner(self) -> Planner:
        """What decides how a file is run."""

    @property
    def runs(self) -> Runs:
        """The runs that go on."""

    @property
    def results(self) -> Results:
        """What the runs of this session found."""

    @property
    def proofs(self) -> Proofs:
        """What trials of fixes have shown."""

    @property
    def views(self) -> Views:
        """The newest results of each open file, placed in its current text."""

    @property
    def profiles(self) -> Profiles:
        """Measured time of the runs that are shown."""

    @property
    def line_facts(self) -> LineFactsOfRuns:
        """What is known about the lines of runs."""
