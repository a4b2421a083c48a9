"""Why two nodes were not fused, in Inductor's words."""

from __future__ import annotations

from typing import Any

Reasons = dict[tuple[str, str], tuple[str, tuple[Any, ...]]]
"""The last reason for not fusing two nodes, with the values that go into its text, by their names."""


def reason_text(reason: str, args: tuple[Any, ...]) -> str:
    """Inductor's reason, with what it names."""
    try:
        return (reason % args).strip().rstrip(".")
    except (TypeError, ValueError):
        return reason
