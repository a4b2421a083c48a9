"""How many zeros a parameter has, and in which pattern."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from irscope.vocabulary.records import dataclass

_ORIGINAL, _MASK = "_orig", "_mask"
"""How torch.nn.utils.prune calls the parts of a masked parameter."""


@dataclass(frozen=True)
class Sparsity:
    """The zeros of one parameter, with its mask applied.

    Args:
        name: In the module: ``layers.0.weight``.
        shape: Its sizes.
        zeros: How many elements are zero.
        slices: By dimension how many slices are zero as a whole, where there are any.
        is_structured: Whether all its zeros are in such slices of one dimension.
        fits_two_of_four: Whether each four elements in a row have two zeros at least; None if rows cannot be divided
            into fours.
        mask: The node that multiplies by its mask, or the mask's own; empty if it has none.
    """

    name: str
    shape: tuple[int, ...]
    zeros: int
    slices: dict[int, int]
    is_structured: bool
    fits_two_of_four: bool | None
    mask: str = ""

    @property
    def elements(self) -> int:
        """How many elements it has."""
        count = 1
        for size in self.shape:
            count *= size
        return count


def sparsities(tensors: Iterable[tuple[str, str, Any]]) -> list[Sparsity]:
    """What is known about each parameter.

    Args:
        tensors: The inputs of a graph: the node, the name in the module, and the tensor.
    """
    torch: Any = sys.modules["torch"]
    by_name = {name: (node, tensor) for node, name, tensor in tensors}
    found, masks = [], {_partner(name) for name in by_name}
    for name, (_, tensor) in by_name.items():
        mask, effective = by_name.get(_partner(name)), tensor.detach()
        if name in masks or not (isinstance(tensor, torch.nn.Parameter) or mask) or tensor.layout is not torch.strided:
            continue
        if mask is not None:
            effective = effective * mask[1].to(effective.dtype)
        found.append(_measured(name.removesuffix(_ORIGINAL) if mask else name, effective, mask[0] if mask else ""))
    return found


def _measured(name: str, tensor: Any, mask: str) -> Sparsity:
    is_zero = tensor == 0
    zeros = int(is_zero.sum())
    slices = {}
    for dimension in range(tensor.dim()) if zeros else ():
        others = [one for one in range(tensor.dim()) if one != dimension]
        if count := int((is_zero.all(dim=others) if others else is_zero).sum()):
            slices[dimension] = count
    whole = [count * (tensor.numel() // tensor.shape[dimension]) for dimension, count in slices.items()]
    is_structured = tensor.dim() > 1 and zeros in whole
    fits = None
    if tensor.dim() == 2 and tensor.shape[-1] % 4 == 0:
        fits = bool((is_zero.reshape(-1, 4).sum(dim=1) >= 2).all())
    return Sparsity(name, tuple(tensor.shape), zeros, slices, is_structured, fits, mask)


def _partner(name: str) -> str:
    """The mask that belongs to the original of a masked parameter; empty for any other name."""
    return name.removesuffix(_ORIGINAL) + _MASK if name.endswith(_ORIGINAL) else ""


def text_of(found: list[Sparsity], device: str) -> str:
    """The stage: one row for each parameter, and what it means on this device."""
    rows = [("parameter", "shape", "zeros", "", "pattern", "2:4", "mask")]
    for one in found:
        shape = ", ".join(map(str, one.shape))
        share = f"{100 * one.zeros / max(one.elements, 1):.1f} %"
        rows.append(
            (one.name, f"[{shape}]", str(one.zeros), share, _pattern(one), _two_of_four(one), one.mask or "none")
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    masks = sum(1 for one in found if one.mask)
    facts = [f"Masks that are multiplied at each call: {masks}."]
    if any(one.zeros for one in found):
        facts.append("The kernels are dense: they compute with zeros as with any other number.")
    if any(one.fits_two_of_four for one in found):
        facts.append(_advice(device))
    return "\n".join([*lines, "", *facts, ""])


def _pattern(one: Sparsity) -> str:
    if not one.zeros:
        return "dense"
    if not one.is_structured:
        return "unstructured"
    dimension = next(at for at, count in one.slices.items() if count * (one.elements // one.shape[at]) == one.zeros)
    return f"structured: {one.slices[dimension]} of {one.shape[dimension]} in dimension {dimension}"


def _two_of_four(one: Sparsity) -> str:
    return {True: "yes", False: "no", None: "not possible"}[one.fits_two_of_four]


def _advice(device: str) -> str:
    how = "torch.sparse.to_sparse_semi_structured has kernels for the 2:4 pattern on CUDA devices of capability 8.0 or newer"
    return f"{how}; the parameters are on {device}." if device != "cuda" else f"{how}."
