"""The keys by which the FX graph cache knows the graphs of a run, kept so that a later run can tell what changed.

The key of each graph is a stage of its compile: one part a line, the parts' digests beside the text.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from irscope.findings.kinds.cache_miss import CacheKey
from irscope.findings.places import function_of
from irscope.protocol import Compile, EarlierStage
from irscope.usercode.source import range_of_node, read_source, text_of_range

if TYPE_CHECKING:
    from irscope.store.store import Store


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

    Args:
        found: What the user's own run finds in the cache: ``hit`` or ``miss``; empty if it is not known.
    """
    digests = [digest for digest, _ in key.parts.values()]
    return {"function": key.function, "file": key.file, "digests": digests, **({"found": found} if found else {})}


class EarlierKeys:
    """The keys of graphs in earlier runs of a script, the newest run first."""

    def __init__(self, stages: Iterable[EarlierStage]) -> None:
        self._stages: dict[tuple[str, str, int, str], list[EarlierStage]] = {}
        for stage in stages:
            self._stages.setdefault((stage.file, stage.function, stage.number, stage.part), []).append(stage)

    def of(self, key: CacheKey, compile: Compile, number: int, graph: str) -> CacheKey | None:
        """The newest key of the same graph in an earlier run, or one that is equal to ``key`` if there is any: what was
        seen before has not changed.

        Args:
            number: Which compile of its function it is, from 0.
            graph: Which graph of the compile: the last part of its stage's id.
        """
        newest = None
        for stage in self._stages.get((compile.file, compile.function, number, graph), ()):
            earlier = _key_in(stage.text, json.loads(stage.data))
            if earlier is not None and earlier.digests == key.digests:
                return earlier
            newest = newest or earlier
        return newest


def load_key(store: Store, run: str, stage: str) -> CacheKey | None:
    """The key that is kept as a stage; None if it is damaged.  Raises LookupError if the run does not have the stage."""
    return _key_in(store.stage_text(run, stage), store.stage_data(run, stage))


def _key_in(text: str, data: Any) -> CacheKey | None:
    named = [line.partition(": ") for line in text.split("\n") if line]
    try:
        if not isinstance(data, dict) or len(named) != len(data["digests"]):
            return None
        parts = {name: (str(digest), value) for (name, _, value), digest in zip(named, data["digests"], strict=True)}
        return CacheKey(parts, str(data["function"]), str(data["file"]))
    except (KeyError, TypeError):
        return None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
