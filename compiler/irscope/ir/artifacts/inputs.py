"""The inputs that an artifact was made for beside those of a call or of a graph."""

from __future__ import annotations

import re

WORDS = {"shape": "size", "dtype": "dtype", "device": "device", "stride": "strides"}
"""The facts of an input, as cache keys print them, and their names for people."""
_EXTENT = re.compile(r"\d*\.\.\d*|\d+")
_SIZE = re.compile(r"torch\.Size\((.*)\)")


def unfit(name: str, was: dict[str, str], now: dict[str, str]) -> str:
    """What differs between an input and the one it was made for, in words; empty if it fits."""
    for field, word in WORDS.items():
        if was.get(field) and not fits(was[field], now.get(field, "")):
            return f"`{name}`: the {word} when it was made: {bare(was[field])}; now: {bare(now.get(field, 'gone'))}."
    return ""


def likeness(was: dict[str, str], now: dict[str, str]) -> int:
    """How many facts of two inputs fit."""
    return sum(fits(was.get(field, ""), now.get(field, "")) for field in WORDS)


def fits(was: str, now: str) -> bool:
    """Whether a fact of an input is what it was; a size that may vary is ``2..64``."""
    before, after = _EXTENT.findall(was), _EXTENT.findall(now)
    if was == now or ".." not in was:
        return was == now
    return len(before) == len(after) and all(map(_is_within, before, after))


def _is_within(was: str, now: str) -> bool:
    low, dots, high = was.partition("..")
    if not dots or not now.isdigit():
        return was == now
    return int(low or 0) <= int(now) <= int(high or now)


def bare(value: str) -> str:
    """``torch.Size([4, 4])`` → ``[4, 4]``."""
    match = _SIZE.fullmatch(value)
    return match[1] if match else value
