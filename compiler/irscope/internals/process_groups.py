"""Which ranks each process group of this process has, by the name under which graphs have it."""

from __future__ import annotations

import sys

from irscope.internals.names import PrivateName

_MODULE = "torch.distributed.distributed_c10d"
_WORLD = PrivateName("how many ranks a process group has", _MODULE, "_world", "2.9 to 2.15")


def group_sizes() -> dict[str, int]:
    """How many ranks each group has."""
    return {name: len(ranks) for name, ranks in ranks_of_groups().items()}


def ranks_of_groups() -> dict[str, list[int]]:
    """Ranks by the name of the group; empty before the script has made a group, and after it has destroyed all."""
    world = _WORLD.find() if _MODULE in sys.modules else None
    names, ranks = (getattr(world, attribute, {}) for attribute in ("pg_names", "pg_group_ranks"))
    return {str(name): list(map(int, ranks[group])) for group, name in list(names.items()) if group in ranks}
