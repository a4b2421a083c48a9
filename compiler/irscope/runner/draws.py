"""Random numbers of a call, pushed to either end: what a program does by chance, as leaving out a layer, is done for sure.

A few calls with other seeds miss what happens in one call of ten.  Numbers near 0 make ``rand() < p`` true for every p that
matters, and numbers near 1 make it false.  Only calls without compile can be pushed, since compiled code draws by itself.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

SMALL, LARGE = "random numbers near 0", "random numbers near 1"
PUSHED = (SMALL, LARGE)
_NEAR = 1e-3
"""How far from its end of the range a number is, as a part of the range."""


@contextlib.contextmanager
def pushed(how: str) -> Iterator[None]:
    """Inside, ``torch.rand`` and the uniform numbers of Python and NumPy are near one end of their range.

    Args:
        how: One of `PUSHED`; with any other text nothing is changed.
    """
    if how not in PUSHED:
        yield
        return
    with contextlib.ExitStack() as stack:
        stack.enter_context(_mode(how))
        for module, names in (("random", ("random", "uniform")), ("numpy.random", ("rand", "random", "uniform"))):
            for name in names:
                if module in sys.modules:
                    stack.enter_context(_replaced(sys.modules[module], name, how))
        yield


def _end(value: Any, low: Any, high: Any, how: str) -> Any:
    return low + (value - low) * _NEAR if how == SMALL else high - (high - value) * _NEAR


@contextlib.contextmanager
def _replaced(module: Any, name: str, how: str) -> Iterator[None]:
    original: Callable[..., Any] = getattr(module, name)

    def drawn(*args: Any, **kwargs: Any) -> Any:
        value = original(*args, **kwargs)
        low, high = (
            args[:2] if name == "uniform" and len(args) > 1 else (kwargs.get("low", 0.0), kwargs.get("high", 1.0))
        )
        return _end(value, low, high, how)

    setattr(module, name, drawn)
    try:
        yield
    finally:
        setattr(module, name, original)


def _mode(how: str) -> Any:
    torch: Any = sys.modules["torch"]
    from torch.overrides import TorchFunctionMode

    class Pushed(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            value = func(*args, **(kwargs or {}))
            if func in (torch.rand, torch.rand_like):
                with torch.no_grad():
                    value.copy_(_end(value, 0.0, 1.0, how))
            return value

    return Pushed()
