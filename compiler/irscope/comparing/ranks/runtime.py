"""Collectives that PyTorch's runtime issues, as a rank kept them, and what runs beside each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from irscope.protocol import RuntimeCollective
from irscope.vocabulary.units import duration

_KINDS = (str, str, str, int, int, str, int, int, int, int, int)


def runtime_of(rows: Sequence[Any]) -> tuple[RuntimeCollective, ...]:
    """From the rows of `irscope.internals.runtime_collectives`; rows of another form are passed over."""
    return tuple(_read(rows))


def _read(rows: Sequence[Any]) -> Iterator[RuntimeCollective]:
    for row in rows:
        if not isinstance(row, (list, tuple)) or len(row) != len(_KINDS):
            continue
        if not all(isinstance(value, kind) for value, kind in zip(row, _KINDS, strict=True)):
            continue
        issuer, operation, module, peer, size, file, line, calls, beside, nanoseconds, device = row
        yield RuntimeCollective(
            issuer, operation, module, None if peer < 0 else peer, None if size < 0 else size, file, line, calls,
            None if beside < 0 else beside, None if beside < 0 else nanoseconds / 1e9, None if device < 0 else device / 1e9,
        )  # fmt: skip


def operation_and_peer(one: RuntimeCollective) -> str:
    """``all_gather``, or ``send, rank 1``."""
    return one.operation if one.peer is None else f"{one.operation}, rank {one.peer}"


def beside_of_runtime(one: RuntimeCollective) -> str:
    """What runs beside a collective: ``nothing``, ``3 of 4 calls, 1.2 ms each``, or of a device ``1.2 ms of 1.5 ms each``."""
    if one.beside is None or one.beside_seconds is None:
        return "not known"
    if not one.beside:
        return "nothing"
    calls = "" if one.beside == one.calls else f"{one.beside} of {one.calls} calls, "
    whole = "" if one.device_seconds is None else f" of {duration(one.device_seconds / one.beside)}"
    return f"{calls}{duration(one.beside_seconds / one.beside)}{whole}" + (" each" if one.beside > 1 else "")
