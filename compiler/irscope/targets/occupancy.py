"""How many warps of a kernel one multiprocessor of an NVIDIA GPU holds at a time, and what allows no more.

As CUDA's occupancy calculator: registers are given out to warps in units of 256 and to four parts of the processor, and
each block has 1 KiB of shared memory that it does not ask for, from compute capability 8.0 on (CUDA C++ Programming Guide,
"Technical Specifications per Compute Capability"; the figures are those of `cuda/__device/arch_traits.h` in NVIDIA's CCCL).
"""

from __future__ import annotations

from irscope.targets.catalogue import Target
from irscope.vocabulary.records import dataclass

_BLOCKS = {
    "7.0": 32, "7.5": 16, "8.0": 32, "8.6": 16, "8.7": 16, "8.8": 16, "8.9": 24, "9.0": 32, "10.0": 32, "10.3": 32,
    "11.0": 24, "12.0": 24, "12.1": 24,
}  # fmt: skip
_REGISTER_UNIT, _PARTS, _OWN_SHARED, _SHARED_UNIT = 256, 4, 1024, 128
_WITHOUT_OWN_SHARED = ("7.0", "7.5")


@dataclass(frozen=True)
class Occupancy:
    """``warps`` of at most ``most``; ``limit``: ``registers``, ``shared memory``, ``blocks`` or ``warps``."""

    warps: int
    most: int
    limit: str


def occupancy(target: Target, warps: int, registers: int, shared: int) -> Occupancy | None:
    """The occupancy of a kernel; None if a figure of the target is not known.

    Args:
        warps: Warps of a block.
        registers: Registers of a thread.
        shared: Bytes of shared memory of a block.
    """
    names = ("registers", "threads", "warp", "shared_memory")
    figures = [target.value(name) for name in names]
    if target.kind != "cuda" or target.architecture not in _BLOCKS or None in figures or warps < 1:
        return None
    file, threads, warp, memory = (int(figure or 0) for figure in figures)
    most = threads // warp
    of_registers = most
    if registers:
        each = _up(registers * warp, _REGISTER_UNIT)
        of_registers = file // _PARTS // each * _PARTS
    reserved = 0 if target.architecture in _WITHOUT_OWN_SHARED else _OWN_SHARED
    own = _up(shared + reserved, _SHARED_UNIT)
    blocks = {
        "warps": most // warps, "registers": of_registers // warps, "shared memory": memory // own if own else most,
        "blocks": _BLOCKS[target.architecture],
    }  # fmt: skip
    limit = min(blocks, key=lambda name: blocks[name])
    return Occupancy(blocks[limit] * warps, most, limit)


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
