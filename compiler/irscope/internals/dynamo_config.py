"""Settings of Dynamo that change what an event means, and the one that turns it off."""

from __future__ import annotations

from irscope.internals.hooks import Hook, replace_attribute
from irscope.internals.names import PrivateName

LIMIT_RAISES = PrivateName(
    "whether the recompile limit is an error", "torch._dynamo.config", "fail_on_recompile_limit_hit", "2.13"
)


def limit_raises() -> bool:
    """Whether a setting makes the recompile limit an error; ``fullgraph=True`` does so, too."""
    return bool(LIMIT_RAISES.find())


COMPILE_NOTHING = Hook(
    what="what the script does without compile: it was compiled",
    module="torch._dynamo.config",
    versions="2.9 to 2.13",
    apply=lambda config: replace_attribute(config, "disable", True),
)
"""Does the same as ``TORCH_COMPILE_DISABLE=1``, which torch reads when it is imported: too late in a fork of the
worker."""
