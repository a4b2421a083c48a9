"""How long a product of matrices would take with blocks of a given size: an estimate that ranks configurations.

It is the largest of three times, as in a roofline: of the multiplications, in whole waves of blocks over the processors;
of the operands, which each block reads through the L2 cache; and of the memory.  On an H200 (torch 2.11, bfloat16) the
template with the least estimate took 1.00, 1.00 and 1.10 times as long as the fastest of 19, for three products; the
first template 5.3 to 9.3 times.  What it assumes, and nobody has measured:

- Without ``wgmma``, which needs 64 rows and four warps, Hopper has 0.63 of its rate.
- The L2 cache has twice the bandwidth of the memory.
- A step of a block's loop takes `_STEP` seconds, divided by the steps that are on the way at a time.
"""

from __future__ import annotations

from irscope.targets.catalogue import Target
from irscope.vocabulary.records import dataclass

_WITHOUT_WGMMA = 0.63
_OF_L2 = 2.0
_STEP = 0.8e-6
_ROWS_OF_WGMMA, _WARPS_OF_WGMMA = 64, 4
_ACCUMULATORS = 128
"""Registers of a thread for its part of the result; with more it has too few for the rest."""
_MOST_REGISTERS = 255


@dataclass(frozen=True)
class Product:
    """``batch`` products of ``rows × inner`` and ``inner × columns``, of numbers of ``size`` bytes and a dtype."""

    batch: int
    rows: int
    columns: int
    inner: int
    dtype: str
    size: int


@dataclass(frozen=True)
class Tile:
    """A block of the result, and how it is computed: ``inner`` is the length of a step, ``stages`` the steps on the way."""

    rows: int
    columns: int
    inner: int
    warps: int
    stages: int


def estimate(target: Target, product: Product, tile: Tile) -> float | None:
    """Seconds; None if a block does not fit into a processor, or a figure of the target is missing."""
    names = ("processors", "bandwidth", "warp", "shared_memory", "threads")
    figures = [target.value(name) for name in names]
    rate = target.rates.get(product.dtype)
    if None in figures or rate is None:
        return None
    processors, bandwidth, warp, shared, threads = (float(figure or 0) for figure in figures)
    block_memory = target.value("shared_memory_per_block_optin") or target.value("shared_memory_per_block") or shared
    used = tile.stages * (tile.rows + tile.columns) * tile.inner * product.size
    accumulators = tile.rows * tile.columns / (tile.warps * warp)
    if used > block_memory or accumulators > _MOST_REGISTERS:
        return None
    resident = max(1, int(min(shared // max(used, 1), threads // (tile.warps * warp), _MOST_REGISTERS // accumulators)))
    blocks = product.batch * -(-product.rows // tile.rows) * -(-product.columns // tile.columns)
    waves = -(-blocks // processors)
    speed = rate.value / processors
    if target.architecture.startswith("9.") and not has_wgmma(tile):
        speed *= _WITHOUT_WGMMA
    if accumulators > _ACCUMULATORS:
        speed /= 2
    steps = -(-product.inner // tile.inner)
    multiplying = waves * tile.rows * tile.columns * steps * tile.inner * 2 / speed
    waiting = -(-blocks // (processors * resident)) * (steps * _STEP / max(1, tile.stages - 1) + _STEP)
    operands = blocks * (tile.rows + tile.columns) * steps * tile.inner * product.size / (_OF_L2 * bandwidth)
    whole = product.rows * product.inner + product.inner * product.columns + product.rows * product.columns
    return max(multiplying, waiting, operands, product.batch * whole * product.size / bandwidth)


def has_wgmma(tile: Tile) -> bool:
    """Whether Hopper's fast instruction fits a block."""
    return tile.rows >= _ROWS_OF_WGMMA and tile.warps % _WARPS_OF_WGMMA == 0
