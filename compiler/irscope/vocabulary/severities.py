"""How much a finding matters."""

from __future__ import annotations

import enum


class Severity(str, enum.Enum):
    """As in the editor."""

    ERROR = "error"
    WARNING = "warning"
    INFORMATION = "information"
    HINT = "hint"
