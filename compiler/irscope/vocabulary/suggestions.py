"""What the user may have meant by a name that does not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_MOST_COMPARED = 5_000
"""Names.  Comparing takes a millisecond for each, and a run may have a hundred thousand."""
_LESS_LIKELY = 0.15
"""Where one name is this much nearer than another, the other was not meant."""
_LONGEST_LIST = 600
"""Characters; the names of a hundred kernels would hide the message before them."""


def did_you_mean(wanted: str, known: Iterable[str], most: int = 3) -> str:
    """`` Did you mean 0/0 or 0/1?``, to be put after a sentence; empty if no name is near."""
    near = nearest(wanted, known)[:most]
    if not near:
        return ""
    *first, last = near
    return f" Did you mean {', '.join(first)} or {last}?" if first else f" Did you mean {last}?"


def did_you_mean_id(typed: str, ids: Iterable[str]) -> str:
    """The same for IDs, of which the first characters are enough: only as many are compared as were typed."""
    starts: dict[str, str] = {}
    for id in ids:
        starts.setdefault(id[: max(len(typed), 8)], id)
    return "".join(f" Did you mean {starts[near]}?" for near in nearest(typed, starts)[:1])


def nearest(wanted: str, known: Iterable[str]) -> list[str]:
    """The names that are nearest to what was typed, the nearest first: misspelt, or only a part of the name."""
    typed = wanted.lower().lstrip("-")
    names = list(dict.fromkeys(known))[:_MOST_COMPARED]
    lowered: dict[str, str] = {}
    for name in names:
        lowered.setdefault(name.lower().lstrip("-"), name)
    close = difflib.get_close_matches(typed, lowered, n=3, cutoff=0.6)
    likeness = {name: difflib.SequenceMatcher(None, name, typed).ratio() for name in close}
    order = list(lowered)
    close.sort(key=lambda name: (-likeness[name], order.index(name)))
    found = [lowered[name] for name in close if likeness[name] > likeness[close[0]] - _LESS_LIKELY]
    if len(typed) > 2:
        found += [name for low, name in lowered.items() if typed in low]
    return list(dict.fromkeys(found))


def listed(known: Iterable[str]) -> str:
    """The names with commas between them; of a long list the beginning, and how many more there are."""
    names = list(dict.fromkeys(known))
    for number in range(1, len(names)):
        if sum(map(len, names[: number + 1])) > _LONGEST_LIST:
            return f"{', '.join(names[:number])} and {len(names) - number} more"
    return ", ".join(names) or "none"
