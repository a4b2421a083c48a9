"""Versions of a graph: what each pass of a compiler changed in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from irscope.capture.run_book import RunBook
from irscope.pipelines.registry import position
from irscope.protocol import StageRef
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.stages import StageKind


@dataclass(frozen=True)
class WrittenGraph:
    """A graph as text and data (`irscope.ir.nodes`), and by the name of each node what a pass can change about it."""

    text: str
    data: dict[str, Any]
    shapes: Mapping[str, str]

    @property
    def count(self) -> int:
        """How many nodes it has."""
        return len(self.data["nodes"]["name"])

    def is_like(self, other: WrittenGraph) -> bool:
        """Whether a pass that made the one from the other changed nothing."""
        return list(self.shapes.items()) == list(other.shapes.items())


def put_version(
    book: RunBook,
    compile: str,
    kind: StageKind,
    passed: str,
    number: int,
    before: WrittenGraph,
    after: WrittenGraph,
    *,
    suffix: str = "",
    backward: bool = False,
) -> None:
    """Puts a graph as a version of a stage, which the stage's last version comes after.

    Args:
        compile: The id of the compile.
        passed: The pass that made it, the ``number``-th that changed the graph.
        suffix: What follows the name of the kind in the stage's id: ``-backward``.
    """
    old, new = before.shapes, after.shapes
    data = {
        "pass": passed, "seconds": 0.0, "subgraph": "",
        "added": [name for name in new if name not in old],
        "removed": [name for name in old if name not in new],
        "changed": [name for name in new if name in old and old[name] != new[name]],
        "moved": [name for name in old if name in new] != [name for name in new if name in old],
        "new": after.data,
    }  # fmt: skip
    id = f"{compile}/{kind.name}{suffix}/{number:02}-{passed}"
    ref = StageRef(id, kind.name, kind.language, len(after.text), passed, 0.0, after.count)
    book.write_version(compile, ref, after.text, position(kind.name, backward) - 0.5 + number / 10_000, data)
