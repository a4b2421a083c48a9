"""Numbers and units as people read them: durations, bytes, counts, FLOPs, shares.

``extension/src/units.ts`` is the same in TypeScript; ``tests/units.json`` has the cases that both are held to.
Prefixes are decimal (1 kB is 1000 B).  A number has three significant digits and no zeros at its end; what rounds up
to the next unit is written in that unit.  A limit that the user has set is not written with these functions but as the
user gave it, in the unit of its setting.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_PREFIXES = ("", "k", "M", "G", "T", "P")


def duration(seconds: float) -> str:
    """Format a time span: ``12.3 µs``, ``60 ms``, ``1.8 s``, ``2 min 5 s``, ``1 h 2 min``.

    Args:
        seconds: Not negative.
    """
    if seconds <= 0:
        return "0 s"
    for power, unit in ((9, "ns"), (6, "µs"), (3, "ms")):
        text = significant(seconds * 10**power)
        if float(text) < 1000:
            return f"{text} {unit}"
    tenths = _fixed(seconds, 1)
    if float(tenths) < 60:
        return f"{tenths} s"
    whole = int(_fixed(seconds, 0))
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    minutes = int(_fixed(seconds / 60, 0))
    return f"{minutes // 60} h {minutes % 60} min"


def size(bytes: float) -> str:
    """Format a number of bytes: ``812 B``, ``3.4 kB``, ``12 MB``, ``2 GB``."""
    return _scaled(bytes, [f"{prefix}B" for prefix in _PREFIXES])


def exact_size(bytes: int) -> str:
    """Format a number of bytes with all its digits: ``812 bytes``, ``12,288 bytes (12.3 kB)``."""
    exact = count(bytes, "byte")
    return exact if bytes < 1000 else f"{exact} ({size(bytes)})"


def flops(number: float) -> str:
    """Format a number of floating-point operations: ``131 kFLOP``, ``2.1 GFLOP``."""
    return _scaled(number, [f"{prefix}FLOP" for prefix in _PREFIXES])


def spans(numbers: Iterable[int], most: int = 8) -> str:
    """Whole numbers in their order, those that follow each other as one: ``0, 2-5, 9``; only the first spans of a long
    list."""
    found: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if found and number == found[-1][1] + 1:
            found[-1] = found[-1][0], number
        else:
            found.append((number, number))
    texts = [
        str(low) if low == high else f"{low}, {high}" if high == low + 1 else f"{low}-{high}" for low, high in found
    ]
    return ", ".join(texts[:most]) + (", …" if len(texts) > most else "")


def ranks_named(ranks: Sequence[int], one: str = "rank", many: str = "ranks") -> str:
    """Ranks of a job in words: ``rank 3``, ``ranks 0, 37``, ``ranks 0-36, 38-1023``; or other processes, by these nouns."""
    return f"{one if len(ranks) == 1 else many} {spans(ranks)}"


def count(number: int, one: str = "", many: str = "") -> str:
    """Format a number of things: ``1 graph``, ``1,200 graphs``; without a noun ``1,200``.

    Args:
        one: The noun for one thing.
        many: The noun for several, if it is not the regular plural of ``one``.
    """
    if not one:
        return f"{number:,}"
    return f"{number:,} {one if number == 1 else many or _plural(one)}"


def kernels(generated: int, library_calls: int = 0) -> str:
    """Format what a program calls: ``20 kernels``, ``1 kernel and 4 library calls``, ``4 library calls``."""
    parts = [count(generated, "kernel")] if generated or not library_calls else []
    return " and ".join([*parts, *([count(library_calls, "library call")] if library_calls else [])])


def percent(part: float, whole: float = 1) -> str:
    """Format a share with two digits: ``33 %``, ``3.2 %``, ``100 %``; of a whole of nothing ``0 %``."""
    return f"{significant(100 * part / whole if whole else 0, 2)} %"


def ratio(factor: float) -> str:
    """Format a factor: ``×1.25``, ``×340``."""
    return f"×{significant(factor)}"


def significant(value: float, digits: int = 3) -> str:
    """Format a number with so many significant digits, all digits before the point, and no zeros at the end."""
    if value == 0:
        return "0"
    exponent = int(f"{value:e}".rpartition("e")[2])
    text = _fixed(value, max(0, digits - 1 - exponent))
    return text.rstrip("0").rstrip(".") if "." in text else text


def _scaled(value: float, units: Sequence[str]) -> str:
    for unit in units[:-1]:
        text = significant(value)
        if abs(float(text)) < 1000:
            return f"{text} {unit}"
        value /= 1000
    return f"{significant(value)} {units[-1]}"


def _plural(noun: str) -> str:
    return noun + ("es" if noun.endswith(("s", "x", "ch", "sh")) else "s")


def _fixed(value: float, decimals: int) -> str:
    """Round half up, as ``toFixed`` of JavaScript does; formats of Python round half to even.

    Not by ``decimal``, whose settings belong to the user's script.
    """
    numerator, denominator = abs(value).as_integer_ratio()
    digits = str((2 * numerator * 10**decimals + denominator) // (2 * denominator)).rjust(decimals + 1, "0")
    text = f"{digits[:-decimals]}.{digits[-decimals:]}" if decimals else digits
    return f"-{text}" if value < 0 else text
