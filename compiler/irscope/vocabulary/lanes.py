"""How far down the pipeline a run goes."""

from __future__ import annotations

import enum


class Lane(str, enum.Enum):
    """How far down the pipeline a run goes."""

    FAST = "fast"
    """Dynamo with an eager backend: graph breaks, guards, recompilations."""
    DEEP = "deep"
    """The pipeline that the script asked for: every stage down to the kernels."""
