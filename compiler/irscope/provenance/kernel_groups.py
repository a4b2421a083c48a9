"""Kernels by module, layers that repeat as one: ``model.layers.0–31.mlp ×32``."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping

from irscope.protocol import Kernel
from irscope.provenance import chain
from irscope.vocabulary.records import dataclass

_NUMBER = re.compile(r"(?:(?<=\.)|^)\d+(?=\.|$)")


@dataclass(frozen=True)
class KernelGroup:
    """Kernels of one module, or of the same module of layers that repeat.

    Args:
        title: The path of the module with ranges in place of numbers, and how many modules it stands for; the class
            where the path is empty; outside of all modules the name of what was compiled, which is around them.
        module_class: The class of the modules; empty outside of these.
    """

    title: str
    module_class: str
    kernels: tuple[Kernel, ...]


def groups_of(kernels: Iterable[Kernel], titles: Mapping[str, str]) -> tuple[KernelGroup, ...]:
    """The kernels by compile, side and module, in the order of the first of each.

    Args:
        titles: By the ID of a compile the name of what was compiled.
    """
    groups: dict[tuple[str, bool, str, str], list[Kernel]] = {}
    for kernel in kernels:
        is_backward = chain.is_of_backward(kernel.stage)
        key = (kernel.compile, is_backward, without_numbers(kernel.module), kernel.module_class)
        groups.setdefault(key, []).append(kernel)
    return tuple(
        KernelGroup(
            repeated_title({kernel.module for kernel in mine}) or kind or titles.get(compile, ""), kind, tuple(mine)
        )
        for (compile, _, _, kind), mine in groups.items()
    )


def without_numbers(module: str) -> str:
    """What the paths of layers that repeat have in common: ``layers.*`` of ``layers.7``."""
    return _NUMBER.sub("*", module)


def repeated_title(modules: set[str]) -> str:
    """One path for paths that differ in numbers only: ``layers.0–31 ×32``."""
    numbers = [[int(number) for number in _NUMBER.findall(module)] for module in modules]
    ranges = iter([_range({of_path[at] for of_path in numbers}) for at in range(len(numbers[0]))])
    title = _NUMBER.sub(lambda _: next(ranges), next(iter(modules)))
    return f"{title} ×{len(modules)}" if len(modules) > 1 else title


def _range(numbers: set[int]) -> str:
    """``0–3, 7`` for 0, 1, 2, 3 and 7."""
    ends = []
    for _, run in itertools.groupby(enumerate(sorted(numbers)), lambda pair: pair[1] - pair[0]):
        members = [number for _, number in run]
        ends.append(f"{members[0]}–{members[-1]}" if len(members) > 1 else str(members[0]))
    return ", ".join(ends)
