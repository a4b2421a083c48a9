"""The keys by which the FX graph cache knows the graphs of a run, kept so that a later run can tell what changed.

The key of each graph is a stage of its compile: one part a line, the parts' digests beside the text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from irscope.findings.kinds.cache_miss import CacheKey
from irscope.findings.places import function_of
from irscope.protocol import Compile, Lane, RunSummary
from irscope.store.store import Store
from irscope.usercode.source import range_of_node, read_source, text_of_range

STAGE = "cache-key"
_EARLIER_RUNS = 5
_Which = tuple[str, str, int, str]


def key_of(compile: Compile, parts: dict[str, tuple[str, str]]) -> CacheKey:
    """The key of a graph of a compile, with what tells whether the source was the same."""
    text = read_source(compile.file)
    node = function_of(compile)
    function = text_of_range(compile.file, range_of_node(compile.file, node)) if node is not None else text
    return CacheKey(parts, _digest(function), _digest(text))


def text_of(key: CacheKey) -> str:
    """A line for each part."""
    return "".join(f"{name}: {value}\n" for name, (_, value) in key.parts.items())


def data_of(key: CacheKey, found: str = "") -> dict[str, Any]:
    """What the text does not tell.

    Parameters
    ----------
    found
        What the user's own run finds in the cache: ``hit`` or ``miss``; empty if it is not known.
    """
    digests = [digest for digest, _ in key.parts.values()]
    return {"function": key.function, "file": key.file, "digests": digests, **({"found": found} if found else {})}


class EarlierKeys:
    """The keys of earlier runs of a script; read when they are asked for, the newest run first.

    A rank of a job is compared with the same rank only: others have other graphs.
    """

    def __init__(self, store: Store, run: str, script: str) -> None:
        self._store, self._run, self._script = store, run, script
        self._rank = self._rank_of(run)
        self._runs: Iterator[RunSummary] | None = None
        self._found: list[dict[_Which, str]] = []
        self._names: list[str] = []

    def of(self, key: CacheKey, compile: Compile, number: int, graph: str) -> CacheKey | None:
        """The newest key of the same graph in an earlier run, or one that is equal to ``key`` if there is any: what was
        seen before has not changed.

        Parameters
        ----------
        number
            Which compile of its function it is, from 0.
        graph
            Which graph of the compile: the last part of its stage's id.
        """
        which, newest = (compile.file, compile.function, number, graph), None
        for i in range(_EARLIER_RUNS):
            if i == len(self._found) and not self._read_one_more():
                break
            stage = self._found[i].get(which)
            earlier = self._load(self._names[i], stage) if stage is not None else None
            if earlier is not None and earlier.digests == key.digests:
                return earlier
            newest = newest or earlier
        return newest

    def _read_one_more(self) -> bool:
        if self._runs is None:
            self._runs = iter(self._store.runs(20, self._script))
        for summary in self._runs:
            if summary.run != self._run and summary.lane is Lane.DEEP and self._rank_of(summary.run) == self._rank:
                self._names.append(summary.run)
                self._found.append(_graphs(self._store.report(summary.run, sizes=False).compiles))
                return True
        return False

    def _rank_of(self, run: str) -> tuple[object, object]:
        how, _ = self._store.how_run(run)
        return how.get("world"), how.get("rank")

    def _load(self, run: str, stage: str) -> CacheKey | None:
        return load_key(self._store, run, stage)


def load_key(store: Store, run: str, stage: str) -> CacheKey | None:
    """The key that is kept as a stage; None if it is damaged.  Raises LookupError if the run does not have the stage."""
    lines, data = store.stage_text(run, stage).split("\n"), store.stage_data(run, stage)
    named = [line.partition(": ") for line in lines if line]
    try:
        if not isinstance(data, dict) or len(named) != len(data["digests"]):
            return None
        parts = {name: (str(digest), value) for (name, _, value), digest in zip(named, data["digests"], strict=True)}
        return CacheKey(parts, str(data["function"]), str(data["file"]))
    except (KeyError, TypeError):
        return None


def _graphs(compiles: tuple[Compile, ...]) -> dict[_Which, str]:
    found: dict[_Which, str] = {}
    counted: dict[tuple[str, str], int] = {}
    for compile in compiles:
        file, function = compile.file, compile.function
        number = counted.get((file, function), 0)
        counted[file, function] = number + 1
        for stage in compile.stages:
            if stage.name == STAGE:
                found[file, function, number, stage.id.rpartition("/")[2]] = stage.id
    return found


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
