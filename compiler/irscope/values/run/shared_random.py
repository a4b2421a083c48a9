"""Random numbers that two graphs share: what one draws is what the other draws, whichever operations they draw with.

Between the dynamo graph and AOTAutograd's graph a dropout becomes a comparison with uniform numbers, so that the same
state of a generator does not give both the same mask.  Inside `same_draws` the n-th operation that draws gets numbers that
depend on n alone.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

from irscope.internals.modes import dispatch_mode
from irscope.internals.operators import is_higher_order, operator_class


class Draws:
    """What was drawn: the shapes, in order.

    Args:
        in_place_below: Whether ``bernoulli_(p)`` is true if the uniform number is below ``p``; else if it is above ``1
            - p``, as the decomposition of a dropout has it.
    """

    def __init__(self, in_place_below: bool = False) -> None:
        self.shapes: list[tuple[int, ...]] = []
        self.in_place_below = in_place_below

    def uniform(self, like: Any) -> Any:
        """Uniform random numbers from 0 to 1, with the shape and device of `like`."""
        torch: Any = sys.modules["torch"]
        return self._next(torch.rand, tuple(like.shape), like.device)

    def normal(self, like: Any) -> Any:
        """Standard normal random numbers, with the shape and device of `like`."""
        torch: Any = sys.modules["torch"]
        return self._next(torch.randn, tuple(like.shape), like.device)

    def _next(self, draw: Any, shape: tuple[int, ...], device: Any) -> Any:
        torch: Any = sys.modules["torch"]
        generator = torch.Generator().manual_seed(len(self.shapes))
        self.shapes.append(shape)
        return draw(shape, generator=generator, dtype=torch.float64, device="cpu").to(device)


@contextlib.contextmanager
def same_draws(draws: Draws) -> Iterator[Draws]:
    """Everything that draws inside gets the numbers of `draws`."""
    torch: Any = sys.modules["torch"]
    mode: Any = dispatch_mode()

    class Mode(mode):  # type: ignore[misc]  # torch is not there when this module is imported
        supports_higher_order_operators = True

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            if is_higher_order(func):  # runs without this mode, so the graphs below it have to enter it
                return func(*map(self._inside, args), **kwargs)
            if torch.Tag.nondeterministic_seeded not in func.tags:
                return func(*args, **kwargs)
            return _drawn(draws, func, args, kwargs)

        def _inside(self, argument: Any) -> Any:
            if not callable(argument) or isinstance(argument, operator_class()):
                return argument

            def run(*args: Any) -> Any:
                with self:
                    return argument(*args)

            return run

    with Mode():
        yield draws


def _drawn(draws: Draws, func: Any, args: Any, kwargs: Any) -> Any:
    torch: Any = sys.modules["torch"]
    name = func.name().partition("::")[2].partition(".")[0]
    if name == "native_dropout":
        return _native_dropout(draws, *args[:3])
    if name in ("bernoulli", "bernoulli_"):
        # PyTorch leaves out an argument that has its default, and `bernoulli_` alone has one.
        chance = args[1] if len(args) > 1 else kwargs.get("p", 0.5 if name == "bernoulli_" else args[0])
        return _bernoulli(draws, args[0], chance, in_place=name == "bernoulli_")
    if name in ("uniform", "uniform_"):
        low, high = (*args[1:3], *(0.0, 1.0)[len(args) - 1 :]) if len(args) < 3 else args[1:3]
        numbers = low + (high - low) * draws.uniform(args[0])
        return args[0].copy_(numbers) if name == "uniform_" else numbers.to(args[0].dtype)
    if "attention" in name:
        if any(isinstance(arg, float) and arg for arg in (*args[3:], kwargs.get("dropout_p", 0.0))):
            draws.shapes.append(tuple(args[0].shape))
        return func(*args, **kwargs)
    result = func(*args, **kwargs)
    if name in ("rand", "rand_like"):
        return draws.uniform(result).to(result.dtype)
    if name in ("randn", "randn_like"):
        return draws.normal(result).to(result.dtype)
    torch.manual_seed(len(draws.shapes))
    draws.shapes.append(tuple(getattr(result, "shape", ())))
    return func(*args, **kwargs)


def _native_dropout(draws: Draws, given: Any, chance: Any, is_training: Any) -> tuple[Any, Any]:
    torch: Any = sys.modules["torch"]
    mask = draws.uniform(given) > chance if is_training else torch.ones_like(given, dtype=torch.bool)
    return given * mask / (1 - chance if is_training and chance < 1 else 1), mask


def _bernoulli(draws: Draws, given: Any, chance: Any, in_place: bool) -> Any:
    numbers = draws.uniform(given)
    hit = numbers > 1 - chance if in_place and not draws.in_place_below else numbers < chance
    return given.copy_(hit) if in_place else hit.to(given.dtype)
