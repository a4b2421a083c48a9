"""How large tensors are: one number for each, read when it is there.

The number is the largest absolute value of a tensor (its infinity norm), NaN if the tensor has any NaN: one pass over
the memory, and no copy.  On a GPU one reduction makes the numbers of all tensors; they go to pinned memory beside the
work, and are read when an event says so.  On a CPU PyTorch's norm is twenty times slower than its least and greatest.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from irscope.internals.training_steps import largest_of_each
from irscope.vocabulary.records import dataclass


@dataclass
class Magnitudes:
    """The largest absolute values of some tensors, perhaps still on their way."""

    numbers: Any
    event: Any = None

    def is_there(self) -> bool:
        """Whether reading them waits for nothing."""
        return self.event is None or bool(self.event.query())

    def read(self) -> list[float]:
        """The numbers, in the order of the tensors; waits for them."""
        if self.event is not None:
            self.event.synchronize()
        return list(map(float, self.numbers.tolist()))


def magnitudes(tensors: Sequence[Any]) -> Magnitudes | None:
    """Starts the reduction of tensors of one device, none of which is empty; None without any."""
    torch: Any = sys.modules["torch"]
    if not tensors:
        return None
    if tensors[0].device.type == "cpu":
        pairs = [torch.stack(_flat(each.detach()).aminmax()) for each in tensors]
        return Magnitudes(torch.stack([_wide(pair.abs().amax()) for pair in pairs]))
    norms = largest_of_each([each.detach() for each in tensors])
    numbers = torch.stack([_wide(each) for each in norms])
    there = torch.empty(numbers.shape, dtype=numbers.dtype, pin_memory=True)
    there.copy_(numbers, non_blocking=True)
    event = torch.cuda.Event()
    event.record()
    return Magnitudes(there, event)


def _wide(number: Any) -> Any:
    return number.to(sys.modules["torch"].float64)


def _flat(tensor: Any) -> Any:
    """Its memory in order, if nothing else lies between; a reduction along other strides is ten times slower."""
    if tensor.is_complex():
        tensor = sys.modules["torch"].view_as_real(tensor)
    extent = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.as_strided((extent,), (1,)) if extent == tensor.numel() else tensor


def measurable(value: Any) -> bool:
    """Whether a value is a plain tensor that can be infinite: not one of a trace, and no subclass."""
    torch: Any = sys.modules["torch"]
    return (
        type(value) in (torch.Tensor, torch.nn.Parameter)
        and (value.is_floating_point() or value.is_complex())
        and value.layout is torch.strided
        and value.device.type in ("cpu", "cuda")
        and value.element_size() > 1  # the 8-bit formats have no such reduction
        and value.numel() > 0
    )
