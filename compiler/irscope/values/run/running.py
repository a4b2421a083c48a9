"""One call of a compiled graph: its inputs as they were before it, and what its graph makes of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from irscope.internals.frames import callers
from irscope.usercode.user_files import is_user_file
from irscope.values.run.compiled import CompiledGraph


class CallMoment:
    """The inputs of a call, copied before the compiled code can change or free them, and the state of the generators."""

    def __init__(
        self, compiled: CompiledGraph, inputs: Sequence[Any], given: Callable[[Sequence[Any]], list[Any]] | None = None
    ) -> None:
        torch: Any = sys.modules["torch"]
        self.compiled = compiled
        self.called_from = _user_line()
        self._inputs = clones(inputs)
        self.given = given is not None
        """Whether others took the place of the inputs (`ValuesRequest.inputs`): ``given`` puts them in."""
        if given is not None:
            self._inputs = given(self._inputs)
        self._cpu = torch.get_rng_state()
        cuda = torch.cuda
        self._cuda = cuda.get_rng_state_all() if cuda.is_available() and cuda.is_initialized() else []

    def inputs(self) -> list[Any]:
        """Fresh copies, with the generators as they were: what runs on them may change them."""
        self.rewind()
        return clones(self._inputs)

    def rewind(self) -> None:
        """Sets the random generators to what they were at the call."""
        torch: Any = sys.modules["torch"]
        torch.set_rng_state(self._cpu)
        if self._cuda:
            torch.cuda.set_rng_state_all(self._cuda)

    def forget(self) -> None:
        """Lets the copies go."""
        self._inputs = []


def _user_line() -> tuple[str, int]:
    """The innermost line of the user's that the call of the compiled code came from; an empty file if there is none."""
    for frame in callers():
        if is_user_file(frame.f_code.co_filename):
            return frame.f_code.co_filename, frame.f_lineno
    return "", 0


def clones(values: Sequence[Any]) -> list[Any]:
    """Copies with the same strides and overlaps; tensors that share memory share it afterwards, too."""
    torch: Any = sys.modules["torch"]
    by_memory: dict[Any, Any] = {}
    copies: list[Any] = []
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    homes = [_memory_of(tensor) for tensor in tensors]
    shared = {home for home in homes if home is not None and homes.count(home) > 1} if len(homes) < 4096 else set()
    for value in values:
        if not isinstance(value, torch.Tensor):
            copies.append(value)
            continue
        home = _memory_of(value)
        if home is None:
            copies.append(value.detach().clone())
            continue
        if home in shared:
            if home not in by_memory:
                by_memory[home] = value.untyped_storage().clone()
            whole = torch.empty(0, dtype=value.dtype, device=value.device).set_(by_memory[home])
            copies.append(whole.as_strided(value.shape, value.stride(), value.storage_offset()))
            continue
        extent = 1 + sum((size - 1) * stride for size, stride in zip(value.shape, value.stride(), strict=True))
        flat = value.detach().as_strided((extent if value.numel() else 0,), (1,), value.storage_offset())
        copies.append(flat.clone().as_strided(value.shape, value.stride(), 0))
    return copies


def _memory_of(tensor: Any) -> int | None:
    """Where a plain strided tensor's memory begins; None for any other kind."""
    torch: Any = sys.modules["torch"]
    if (
        type(tensor) not in (torch.Tensor, torch.nn.Parameter)
        or tensor.layout is not torch.strided
        or tensor.is_quantized
    ):
        return None
    return int(tensor.untyped_storage().data_ptr())
