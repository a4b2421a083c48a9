"""Which pipeline a run goes through, and how far down."""

from __future__ import annotations

import enum

DEFAULT_PIPELINE = "inductor"
"""The name of the pipeline that a run goes through if none is named."""


class Lane(str, enum.Enum):
    """How far down the pipeline a run goes."""

    FAST = "fast"
    """Dynamo with an eager backend, or AOTAutograd where that shows more: graph breaks, guards, recompilations."""
    DEEP = "deep"
    """The pipeline that the script asked for: every stage down to the kernels."""


DEFAULT_ROUNDS = 9
"""How often a comparison of pipelines times them, if nobody says it."""
