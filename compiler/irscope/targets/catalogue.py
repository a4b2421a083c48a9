"""The catalogue of targets: what each device is and can do, and where each figure comes from.

``catalogue.json`` beside this file has them all.  A file of the same form, which the environment variable
``IRSCOPE_TARGETS`` names, adds targets or replaces some: ``sources`` and ``targets``.  Only the user's own environment can
set the variable, never a workspace.  The file is data: it is bounded and checked, and what is wrong with it is a
`Catalogue.problems`, so a mistake in it costs its targets and nothing else.
"""

from __future__ import annotations

import functools
import json
import os
import re
from collections.abc import Mapping
from typing import Any

from irscope.usercode.reading import read_bounded
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.suggestions import did_you_mean, listed
from irscope.vocabulary.visible import printable

VARIABLE = "IRSCOPE_TARGETS"
"""The environment variable that names a file of more targets."""

CPU = "cpu"
KINDS = ("cuda", "hip", CPU)
"""What a target is: a GPU of NVIDIA's or AMD's, or a CPU with a set of instructions."""

_FILE = os.path.join(os.path.dirname(__file__), "catalogue.json")
_LONGEST_FILE = 1_000_000
_MOST_TARGETS = 200
_MOST_NAMES = 20
_LONGEST_TEXT = 300
_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")
_DTYPE = re.compile(r"[a-z][a-z0-9_]{0,31}")
_ARCHITECTURES = {
    "cuda": re.compile(r"\d{1,2}\.\d"),
    "hip": re.compile(r"gfx[0-9a-f]{3,5}"),
    "cpu": re.compile("avx2|avx512|amx"),
}


@dataclass(frozen=True)
class FigureKind:
    """What a figure means: its unit, the words for people, and the range that is believed."""

    unit: str
    meaning: str
    most: float
    least: float = 1
    whole: bool = True


FIGURES: Mapping[str, FigureKind] = {
    "processors": FigureKind("", "streaming multiprocessors, or compute units", 10_000),
    "memory": FigureKind("B", "memory", 1e15),
    "bandwidth": FigureKind("B/s", "bandwidth of the memory", 1e15),
    "l2": FigureKind("B", "L2 cache; of AMD's GPUs that of one die", 1e12),
    "infinity_cache": FigureKind("B", "last cache before the memory", 1e12),
    "registers": FigureKind("", "registers of 32 bits of each processor", 1e7),
    "threads": FigureKind("", "threads that a processor holds", 1e5),
    "threads_per_block": FigureKind("", "threads of a block", 1e5),
    "shared_memory": FigureKind("B", "shared memory of each processor", 1e9),
    "shared_memory_per_block": FigureKind("B", "shared memory of a block", 1e9),
    "shared_memory_per_block_optin": FigureKind("B", "shared memory of a block that asks for more", 1e9),
    "warp": FigureKind("", "threads of a warp, or of a wavefront", 1024),
    "clock": FigureKind("Hz", "clock of the processors", 1e11),
    "memory_clock": FigureKind("Hz", "clock of the memory", 1e11),
    "memory_bus": FigureKind("bit", "width of the memory bus", 1e6),
}
"""All figures by name, in the order of ``irscope targets --json``; rates by dtype are apart (`Target.rates`)."""

_RATE = FigureKind("FLOP/s", "operations per second", 1e19, whole=False)


@dataclass(frozen=True)
class TargetFigure:
    """A number and where it comes from: the title of the source, and its address if it has one."""

    value: float
    source: str
    link: str = ""


@dataclass(frozen=True)
class Target:
    """A device, or a CPU with a set of instructions.

    Args:
        name: What ``--target`` takes: ``h100``.
        title: The name for people.
        kind: One of `KINDS`.
        architecture: The compute capability (``9.0``), the name of the instruction set (``gfx942``), or that of a CPU's
            (``avx512``).
        reported: The names under which PyTorch reports the device.  Others of its family have other figures.
        figures: By the names of `FIGURES`; those that are not known are missing.
        rates: Operations per second by dtype, dense, without sparsity.
        file: The file that it comes from; empty for irscope's own.
    """

    name: str
    title: str
    kind: str
    architecture: str
    reported: tuple[str, ...]
    figures: Mapping[str, TargetFigure]
    rates: Mapping[str, TargetFigure]
    file: str = ""

    def value(self, figure: str) -> float | None:
        """A figure; None if it is not known."""
        known = self.figures.get(figure)
        return None if known is None else known.value


@dataclass(frozen=True)
class Catalogue:
    """All targets by name, and what is wrong with the user's own file, in sentences."""

    targets: Mapping[str, Target]
    problems: tuple[str, ...] = ()

    def named(self, name: str) -> Target:
        """The target of a name.  Raises LookupError with a message for the user if there is none."""
        if (found := self.targets.get(name)) is not None:
            return found
        hint = did_you_mean(name, self.targets) or f" The targets are: {listed(self.targets)}."
        raise LookupError(f"Unknown target: {name!r}.{hint}{''.join(f' {each}' for each in self.problems)}")


def catalogue() -> Catalogue:
    """irscope's own targets, and those of the file that the environment names."""
    return read_catalogue(os.environ.get(VARIABLE, ""))


@functools.lru_cache(maxsize=4)
def read_catalogue(path: str = "") -> Catalogue:
    """irscope's own targets, and those of a file of the user's; empty: of none."""
    own, _ = _parsed(_FILE, "")
    if not path:
        return Catalogue(own)
    more, problems = _parsed(path, path)
    return Catalogue({**own, **more}, problems)


def _parsed(path: str, origin: str) -> tuple[dict[str, Target], tuple[str, ...]]:
    """The targets of a file, and what is wrong with it; a target with a mistake is left out."""
    try:
        data = json.loads(read_bounded(path, _LONGEST_FILE))
        sources = _object(data, "the file").get("sources", {})
        targets = _object(_object(data, "the file").get("targets"), "targets")
        _object(sources, "sources")
        if len(targets) > _MOST_TARGETS:
            raise ValueError(f"it has {len(targets)} targets, more than {_MOST_TARGETS}")
    except OSError as error:
        return {}, (f"{VARIABLE}: {printable(path)} cannot be read: {error.strerror}.",)
    except (ValueError, TypeError, RecursionError) as error:
        return {}, (f"{VARIABLE}: {printable(path)} is not a file of targets: {printable(str(error))}.",)
    found, problems = {}, []
    for name, entry in targets.items():
        try:
            found[name] = _target(name, entry, sources, origin)
        except (ValueError, TypeError) as error:
            problems.append(f"{VARIABLE}: {printable(path)}: target {_short(name)}: {printable(str(error))}.")
    return found, tuple(problems)


def _target(name: str, entry: Any, sources: Any, origin: str) -> Target:
    """Raises ValueError or TypeError with what is wrong."""
    if not _NAME.fullmatch(name):
        raise ValueError("its name must be lower-case letters, digits and hyphens, 32 at most")
    facts = _object(entry, "it")
    if unknown := sorted(set(facts) - {"title", "kind", "architecture", "reported", "figures", "rates"}):
        raise ValueError(f"unknown key {_short(unknown[0])}")
    kind, architecture = _kind(facts.get("kind"), facts.get("architecture"))
    reported = facts.get("reported", [])
    if not isinstance(reported, list) or len(reported) > _MOST_NAMES:
        raise ValueError(f"reported must be a list of {_MOST_NAMES} names at most")
    figures = _object(facts.get("figures", {}), "figures")
    if unknown := sorted(set(figures) - set(FIGURES)):
        raise ValueError(f"unknown figure {_short(unknown[0])}")
    rates = _object(facts.get("rates", {}), "rates")
    if wrong := [dtype for dtype in rates if not _DTYPE.fullmatch(dtype)]:
        raise ValueError(f"{_short(wrong[0])} is not a dtype")
    if rates and "float32" not in rates:
        raise ValueError("rates must have one of float32, which stands for every dtype that is missing")
    return Target(
        name,
        _text(facts.get("title"), "title"),
        kind,
        architecture,
        tuple(_text(alias, "reported") for alias in reported),
        {
            figure: _figure(figures[figure], figure, bounds, sources)
            for figure, bounds in FIGURES.items()
            if figure in figures
        },
        {dtype: _figure(figure, dtype, _RATE, sources) for dtype, figure in rates.items()},
        origin,
    )


def _kind(kind: Any, architecture: Any) -> tuple[str, str]:
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}")
    if not isinstance(architecture, str) or not _ARCHITECTURES[kind].fullmatch(architecture):
        raise ValueError(f"architecture {_short(architecture)} is not one of kind {kind}")
    return kind, architecture


def _figure(given: Any, name: str, kind: FigureKind, sources: Mapping[str, Any]) -> TargetFigure:
    if not isinstance(given, list) or len(given) != 2:
        raise ValueError(f"{name} must be a number and the name of its source")
    value, source = given
    if isinstance(value, bool) or not isinstance(value, (int, float)) or (value != value):
        raise ValueError(f"{name} is not a number")
    if not kind.least <= value <= kind.most or (kind.whole and value != int(value)):
        wanted = "a whole number" if kind.whole else "a number"
        raise ValueError(f"{name} is {_short(value)}, not {wanted} from {kind.least:g} to {kind.most:g}")
    if not isinstance(source, str) or source not in sources:
        raise ValueError(f"{name} has the source {_short(source)}, which is not among the sources")
    return TargetFigure(int(value) if value == int(value) else value, *_source(source, sources[source]))


def _source(name: str, entry: Any) -> tuple[str, str]:
    """The title and the link of a source."""
    about = _object(entry, f"source {_short(name)}")
    link = about.get("link", "")
    if link and not (isinstance(link, str) and link.startswith("https://")):
        raise ValueError(f"the link of source {_short(name)} is not an https address")
    return _text(about.get("title"), f"title of source {_short(name)}"), _text(link, "link") if link else ""


def _object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{what} must be an object")
    return value


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str) or not value or len(value) > _LONGEST_TEXT or value != printable(value):
        raise ValueError(f"{what} must be a text of {_LONGEST_TEXT} printable characters at most")
    return value


def _short(value: object) -> str:
    return printable(repr(value)[:80])
