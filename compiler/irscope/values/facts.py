"""What an expression is about: things with named facts, lists that are made on request, blocks of numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any


class BadExpression(ValueError):
    """The expression is not understood here, or has no value; the message says which part."""


class Facts:
    """Something with named facts: a node, a stage, a kernel.

    Args:
        kind: ``node``, ``stage``, …; for the reader.
        summary: One line that stands for it.
        facts: Values, or functions that return one on request.
        label: What it is called in a list, where that is not its fact ``name``.
    """

    def __init__(self, kind: str, summary: str, facts: Mapping[str, Any], label: str = "") -> None:
        self.kind = kind
        self.label = label
        self.summary = summary
        self._facts = dict(facts)

    def __str__(self) -> str:
        return self.summary

    def names(self) -> list[str]:
        """The names of all facts, without reading their values."""
        return list(self._facts)

    def get(self, name: str) -> Any:
        """Raises BadExpression for a name that it does not have."""
        if name not in self._facts:
            raise BadExpression(f"a {self.kind} has no {name!r}; it has {', '.join(self._facts)}")
        value = self._facts[name]
        if callable(value):
            value = self._facts[name] = value()
        return value


class Elements:
    """Numbers that are compared and calculated with one by one; what a mask leaves out does not count in the end."""

    def __init__(self, numbers: Sequence[Any], live: Sequence[Any] | None = None) -> None:
        self.numbers, self.live = numbers, live

    def with_(self, operate: Callable[[Any, Any], Any], other: Any, *, swapped: bool = False) -> Elements:
        """Each element and a number, or the element at the same place.  Raises BadExpression for another size."""
        others = list(other.numbers) if isinstance(other, Elements) else [other]
        if 1 in (len(others), len(self.numbers)) and len(others) != len(self.numbers):
            if isinstance(other, Elements) and len(self.numbers) == 1:
                return other.with_(operate, self.numbers[0], swapped=not swapped)
            others *= len(self.numbers)
        if len(others) != len(self.numbers):
            raise BadExpression(f"blocks of {len(self.numbers)} and {len(others)} elements do not fit together")
        pairs = zip(others, self.numbers, strict=True) if swapped else zip(self.numbers, others, strict=True)
        live = self.live if self.live is not None else other.live if isinstance(other, Elements) else None
        return Elements([_quietly(operate, *pair) for pair in pairs], live)

    def __bool__(self) -> bool:
        """Whether a single element is true.  Raises BadExpression for several."""
        if len(self.numbers) != 1:
            raise BadExpression(f"{len(self.numbers)} elements are neither true nor false: add .any() or .all()")
        return bool(self.numbers[0])

    def reduced(self, how: str) -> Any:
        """``any``, ``all``, ``sum``, ``min`` or ``max`` of the elements that count; None of nothing."""
        left = (
            self.numbers if self.live is None else [n for n, live in zip(self.numbers, self.live, strict=True) if live]
        )
        return REDUCED[how](left) if left or how not in ("min", "max") else None


REDUCED: Mapping[str, Callable[[Sequence[Any]], Any]] = {"any": any, "all": all, "sum": sum, "min": min, "max": max}


def _quietly(operate: Callable[[Any, Any], Any], one: Any, other: Any) -> Any:
    try:
        return operate(one, other)
    except ArithmeticError:
        return float("nan")


class Block(Facts):
    """A block of a kernel: facts about it, and in an expression its elements."""

    elements = Elements(())


class Lazy(Sequence[Any]):
    """A list whose items are made on request; ``text`` stands for it where it would be long to tell."""

    def __init__(
        self, length: int, item: Callable[[int], Any], label: Callable[[int], str] | None = None, text: str = ""
    ) -> None:
        self._length, self._item, self.text = length, item, text
        self.label = label
        """What an item is called where its index is not; an index too: it can be asked for by it."""

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self._item(each) for each in range(*index.indices(self._length))]
        return self._item(range(self._length)[index])
