"""What a target takes where Inductor would choose by timing: what a real device has chosen, else what a model says."""

from __future__ import annotations

from collections.abc import Mapping

from irscope.protocol import Choices
from irscope.targets.catalogue import Target
from irscope.targets.tiles import Product, Tile, estimate
from irscope.vocabulary.records import dataclass


@dataclass(frozen=True)
class TargetChoices:
    """See `irscope.internals.tuning_hooks.Replay`.

    Args:
        known: What the real device has chosen.
        configs: By the name of an operator or kernel the number of the choice that the user wants; empty name: of all.
    """

    target: Target
    known: Choices
    configs: Mapping[str, int]

    def template(self, key: str) -> dict[str, float | None] | None:
        """Times in seconds by option."""
        return self.known.template(key)

    def padding(self, key: str) -> bool | None:
        """Whether the device pads."""
        return self.known.padding(key)

    def number(self, name: str) -> int | None:
        """Which choice is wanted, counted from 1."""
        return number_of(self.configs, name)

    def estimate(self, sizes: tuple[int, ...], dtype: str, itemsize: int, options: dict[str, str]) -> float | None:
        """Seconds of a template for matrices of ``batch, rows, columns, inner``; None: not known."""
        try:
            tile = Tile(*(int(options[name]) for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K", "num_warps", "num_stages")))
        except (KeyError, ValueError):
            return None
        batch, rows, columns, inner = sizes
        return estimate(self.target, Product(batch, rows, columns, inner, dtype, itemsize), tile)


def number_of(configs: Mapping[str, int], name: str) -> int | None:
    """Which configuration of an operator or kernel is wanted, counted from 1; None: the first."""
    return configs.get(name, configs.get(""))
