"""What the sizes of an exported program must meet, and what does not meet it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from irscope.values.expressions import evaluate
from irscope.values.facts import BadExpression
from irscope.vocabulary.suggestions import listed

_SIZE_OF = re.compile(r"L\['(\w+)'\]\.size\(\)\[(\d{1,2})\]")
_EXTENT = re.compile(r"\d+")


def unmet(constraints: list[str], shapes: dict[str, str]) -> Iterator[str]:
    """The constraints that do not hold, in words; what reads anything but sizes that are known is left out.

    Args:
        shapes: As cache keys print them (``torch.Size([8, 3])``), by the name of the input.
    """
    for constraint in constraints:
        sizes = {
            f"{name}.shape[{at}]": _size(shapes.get(name, ""), int(at)) for name, at in _SIZE_OF.findall(constraint)
        }
        names = list(sizes)
        text = _SIZE_OF.sub(lambda found: f"s{names.index(f'{found[1]}.shape[{found[2]}]')}", constraint)  # noqa: B023
        try:
            is_met = evaluate(text, lambda name: sizes[names[int(name[1:])]])  # noqa: B023
        except (BadExpression, LookupError, ValueError, TypeError, ArithmeticError):
            continue
        if not is_met:
            now = listed([f"`{name}` is {size}" for name, size in sizes.items()])
            readable = _SIZE_OF.sub(r"\1.shape[\2]", constraint)
            yield f"`{readable}` does not hold: {now}."


def _size(shape: str, at: int) -> int | None:
    found = _EXTENT.findall(shape)
    return int(found[at]) if at < len(found) and ".." not in shape else None
