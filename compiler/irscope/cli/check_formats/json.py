"""The reports of a check as data."""

from __future__ import annotations

import json

from irscope.cli.checked import Check
from irscope.protocol import to_json


def written(check: Check) -> str:
    """One JSON document in ASCII."""
    return json.dumps(to_json(check), indent=1) + "\n"
