"""Random numbers that are the same in two runs of a script: all generators are seeded before the script draws."""

from __future__ import annotations

import random
import sys
from typing import Any

from irscope.internals.hooks import Hook, Undo


def seed_all(seed: int) -> None:
    """Seeds the generators of Python, of torch, and of numpy if the script has imported it."""
    random.seed(seed)
    sys.modules["torch"].manual_seed(seed)
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed(seed)


def next_ones() -> list[float]:
    """What Python's generator gives next, and numpy's if the script has imported it."""
    numpy = sys.modules.get("numpy")
    return [random.random(), *([float(numpy.random.random())] if numpy is not None else [])]


def hooks(seed: int) -> list[Hook]:
    """Seed each library's generators when it is imported; a script that seeds them itself goes on to do so."""

    def of_torch(module: Any) -> Undo:
        random.seed(seed)
        module.manual_seed(seed)
        return lambda: None

    def of_numpy(module: Any) -> Undo:
        module.seed(seed)
        return lambda: None

    return [
        Hook("the same random numbers in both runs", "torch", "2.9 to 2.13", of_torch),
        Hook("the same random numbers of numpy in both runs", "numpy.random", "2.9 to 2.13", of_numpy),
    ]
