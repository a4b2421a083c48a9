"""Settings of Dynamo that change what an event means."""

from __future__ import annotations

from irscope.internals.names import PrivateName

LIMIT_RAISES = PrivateName(
    "whether the recompile limit is an error", "torch._dynamo.config", "fail_on_recompile_limit_hit", "2.13"
)


def limit_raises() -> bool:
    """Whether a setting makes the recompile limit an error; ``fullgraph=True`` does so, too."""
    return bool(LIMIT_RAISES.find())
