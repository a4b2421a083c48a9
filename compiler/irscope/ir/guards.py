"""The guards of a compile: what is checked before its code runs, read from the text that PyTorch prints."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from typing import Any

from irscope.ir.guard_text import FailedGuard, parse_failed_guard, readable, without_type
from irscope.protocol import Compile, Origin
from irscope.vocabulary.patterns import pattern
from irscope.vocabulary.records import dataclass

_GUARD = pattern(r"^[| ]*\+- (?P<kind>[A-Z][A-Z_0-9]+): (?=.)", re.MULTILINE)
_LATENCY = pattern(r"^Guard latency = (?P<microseconds>[\d.]+) us\s*$", re.MULTILINE)
_SITE = pattern(r"\s+# (?:(?P<code>.*?)\s+# )?(?P<file>\S+?):(?P<line>\d+) in (?P<function>.+?)\s*$")
_BY_INDUCTOR = pattern(r"\band \((?P<file>_inductor/\S+?):(?P<line>\d+) in \w+\)")
_RANGE = pattern(r"(?P<least>: 2 <= \S+) <= \d+ .*")
_ACCESS = pattern(r"[LG]\['[^']+'\](?:\.[A-Za-z_]\w*|\[[^\]]+\])*")


@dataclass(frozen=True)
class Guard:
    """One guard.

    Args:
        kind: PyTorch's word: ``TENSOR_MATCH``, ``EQUALS_MATCH``, ``ID_MATCH``, …
        check: The condition, as printed.
        source: What it watches, as the user would write it: ``x``, ``self.drop.training``; empty for the global state.
        origin: The line that made it; None if PyTorch does not report it.
        code: That line's text as printed.
        failed: In how many recompilations of this run it was the guard that failed.
        nanoseconds: What one check of it takes where it was measured, with warm caches and without the way to the
            value; exact to a few.  A guard that prints several lines has it on the first (see
            internals/guard_costs.py).
    """

    kind: str
    check: str
    source: str
    origin: Origin | None
    code: str
    failed: int
    nanoseconds: float | None = None


@dataclass(frozen=True)
class GuardList:
    """Guards of one compile.

    Args:
        latency: The time of one check of all of them in µs, as PyTorch measured it once, with cold caches.
        count: How many there are; ``guards`` has fewer where only some were asked for.
    """

    compile: str
    latency: float | None
    count: int
    guards: tuple[Guard, ...]


def latency_microseconds(text: str) -> float | None:
    """What PyTorch measured for one check of all guards of a compile; None if the text does not have it."""
    at = text.rfind("Guard latency = ")  # in the last line of megabytes
    match = _LATENCY.match(text, at) if at >= 0 else None
    return float(match["microseconds"]) if match else None


def guards_of(
    compile: Compile, text: str, compiles: Sequence[Compile], costs: Any = None, most: int | None = None
) -> GuardList:
    """Reads the ``guards`` stage of a compile.

    Args:
        compiles: All compiles of the run: their reasons tell which guards failed, their files complete the printed
            names.
        costs: What is kept beside the text: for each guard its kind, how many lines it prints, and its nanoseconds.
        most: At most this many guards, the failed ones among them first.
    """
    failures = [
        parse_failed_guard(reason)
        for other in compiles
        for reason in other.reasons[:1]
        if reason.startswith(f"{compile.id.partition('#')[0]}: ") and _same_round(other.id, compile.id)
    ]
    matches = list(_GUARD.finditer(text))
    nanoseconds = _nanoseconds([match["kind"] for match in matches], costs)
    rows = list(zip(matches, nanoseconds, strict=True))
    if most is not None and not failures:
        rows = rows[:most]
    files = {other.file for other in compiles}
    paths: dict[str, str] = {}  # printed → whole
    guards = [_guard(match, cost, failures, files, paths) for match, cost in rows]
    if most is not None:
        guards = sorted(guards, key=lambda guard: not guard.failed)[:most]
    return GuardList(compile.id, latency_microseconds(text), len(matches), tuple(guards))


def without_inductors(text: str) -> str:
    """The guards of the script alone, without the time that a check of all takes: a target has those of its own code
    generator in place of the CPU's.  PyTorch prints both bounds of a size as one guard; the least one is the script's."""
    text = _RANGE.sub(lambda found: found["least"] if _BY_INDUCTOR.search(found[0]) else found[0], text)
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if not (_BY_INDUCTOR.search(line) or _LATENCY.match(line)))


def _guard(
    match: re.Match[str],
    nanoseconds: float | None,
    failures: Sequence[FailedGuard],
    files: Iterable[str],
    paths: dict[str, str],
) -> Guard:
    text, end = match.string, match.string.find("\n", match.end())
    kind, rest = match["kind"], text[match.end() : end if end >= 0 else len(text)]
    site = _SITE.search(rest) if "# " in rest else None
    check = rest[: site.start()] if site else rest
    # The line of a guard that the code generator made is only where the size is used first.
    made = _BY_INDUCTOR.search(rest, site.end("line")) if site else None
    site = made or site
    access = _ACCESS.search(check)
    source = readable(access[0]) if access else ""
    if site and site["file"] not in paths:
        paths[site["file"]] = _full_path(site["file"], files)
    origin = Origin(paths[site["file"]], int(site["line"])) if site else None
    failed = sum(_is(failure.text, failure.source, kind, check, source) for failure in failures)
    return Guard(
        kind, check.strip(), source, origin, (site["code"] or "") if site and not made else "", failed, nanoseconds
    )


def _nanoseconds(kinds: list[str], costs: Any) -> list[float | None]:
    """What each guard costs; of none, where the costs are not of these guards."""
    lines = [(kind, ns if i == 0 else None) for kind, count, ns in costs or () for i in range(count)]
    return [ns for _, ns in lines] if [kind for kind, _ in lines] == kinds else [None] * len(kinds)


def on_argument(guards: Iterable[Guard], name: str) -> list[Guard]:
    """The guards that watch an argument or something inside it."""
    return [guard for guard in guards if re.match(rf"{re.escape(name)}(?!\w)", guard.source)]


def _same_round(one: str, other: str) -> bool:
    return one.partition("#")[2] == other.partition("#")[2]


def _is(failure: str, failed_source: str, kind: str, check: str, source: str) -> bool:
    check = without_type(check.strip())
    if failure == check or readable(check) == readable(failure):
        return True
    if kind == "TENSOR_MATCH":
        return failure.startswith("tensor '") and failed_source == source
    if kind == "GLOBAL_STATE":
        return failure.startswith("GLOBAL_STATE")
    return kind == "NO_TENSOR_ALIASING" and failure.startswith("Duplicate tensors")


def _full_path(printed: str, files: Iterable[str]) -> str:
    """PyTorch cuts off how a path begins, not always at a slash; the file of the run that ends so, if there is just one."""
    found = [file for file in files if file.replace(os.sep, "/").endswith(printed.replace(os.sep, "/"))]
    return found[0] if len(found) == 1 else printed
