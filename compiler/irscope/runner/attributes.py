"""Numbers and tensors that a module keeps in plain attributes, such as a counter: neither parameters nor buffers."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

Place = tuple[str, str]
"""The path of a module in the whole one, and the name of an attribute."""


class Attributes:
    """The plain attributes of a module and of those inside of it, as they are now."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self._kept = {place: (value, _copy(value)) for place, value in _plain(module)}

    def put_back(self) -> None:
        """Gives the attributes the values that they had, so that a call does not depend on those before it."""
        torch: Any = sys.modules["torch"]
        modules = dict(self._module.named_modules())
        for (path, name), (value, copy) in self._kept.items():
            if path in modules and modules[path].__dict__.get(name) is not value:
                modules[path].__dict__[name] = value
            if isinstance(value, torch.Tensor):
                # One of another size, or whose elements share memory, stays: the results then differ from call to call.
                with torch.no_grad(), contextlib.suppress(RuntimeError):
                    value.copy_(copy)

    def changed(self) -> dict[str, Any]:
        """What is another number now than it was, by place.  A tensor of one element is the number in it."""
        found = {}
        for (path, name), value in _plain(self._module):
            kept = self._kept.get((path, name))
            number = _number(value)
            if number is not None and (kept is None or _number(kept[1]) != number):
                found[f"{path}.{name}".lstrip(".")] = number
        return found


def attributes_of(program: Any) -> Attributes | None:
    """The attributes of a compiled program's module; None if it is not one."""
    module = getattr(program, "_orig_mod", getattr(program, "__self__", program))
    return Attributes(module) if isinstance(module, sys.modules["torch"].nn.Module) else None


def _plain(module: Any) -> Iterator[tuple[Place, Any]]:
    torch: Any = sys.modules["torch"]
    for path, one in module.named_modules():
        for name, value in list(vars(one).items()):
            is_tensor = isinstance(value, torch.Tensor) and not value.is_inference()
            if not name.startswith("_") and (is_tensor or isinstance(value, (bool, int, float))):
                yield (path, name), value


def _copy(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, sys.modules["torch"].Tensor) else value


def _number(value: Any) -> bool | int | float | None:
    if not isinstance(value, sys.modules["torch"].Tensor):
        return value  # type: ignore[no-any-return]
    return value.item() if value.numel() == 1 and not value.is_complex() else None
