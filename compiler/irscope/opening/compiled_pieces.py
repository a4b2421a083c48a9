"""The pieces of any backend that cuts the graph of one Dynamo compile, and has Inductor compile each cut by itself.

SGLang does so, DDP does, and backends that people write.  None of them names its pieces in PyTorch's trace.  But the
records of Inductor and AOTAutograd come in a fixed order for each graph (``_RANKS``), so where the order begins again,
the next piece begins.  A compile with one round has no pieces.

What is compiled for a single size when that is first called is in no Dynamo compile, and has no compile ID.  It
belongs to the piece with the same graph before AOTAutograd.  Sizes are read from the parameters of the graphs that AOTAutograd
traced.  Whether a CUDA graph was captured is in no record.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

from irscope.events.trace import Record
from irscope.opening.alike_graphs import alike, operations
from irscope.protocol import Piece

_RANKS = {
    "aotautograd_cache_miss": 0,
    "aotautograd_cache_bypass": 0,
    "before_pre_grad_graph": 1,
    "aot_forward_graph_fw_metadata": 2,
    "aot_joint_graph": 2,
    "aot_inference_graph": 2,
    "aot_forward_graph": 2,
    "aotautograd_cache_hit": 4,
}
_LOWERED = ("inductor_", "fx_graph_", "after_post_grad_graph")
_LOWERED_RANK = 3
_TRACED = ("aot_joint_graph", "aot_inference_graph", "aot_forward_graph")
_STATES = ("hit", "bypass", "miss")
"""States of the FX graph cache. For a forward and a backward, the one that costs more counts."""
_STATE = re.compile(r"fx_graph(?:_bundled)?_cache_(hit|miss|bypass)$|aotautograd_cache_(hit)$")
_TENSOR = re.compile(r'"\w+\[([^\]"]{0,200})\]')
_MOST, _MOST_SIZES, _MOST_OPEN = 20_000, 200, 200
_DAY = 86_400.0
ANY_SIZE, ONE_SIZE = "any size", "one size"


@dataclasses.dataclass
class _Part:
    """One graph that Inductor compiled."""

    compile: str
    attempt: int
    began: float
    rank: int = 0
    seconds: float = 0.0
    cache: str = ""
    compiled: bool = False
    written: str = ""
    """The graph before AOTAutograd; empty if its cache answered, and after `_read`."""
    traced: str = ""
    """The graph that AOTAutograd traced."""
    before: str = ""
    """What makes graphs before AOTAutograd alike."""
    key: str = ""
    """What makes traced graphs alike."""
    steps: str = ""
    """The operations, without sizes."""
    sizes: tuple[str, ...] = ()
    """The sizes of all tensors among the parameters."""

    def read(self) -> None:
        """Keeps what is compared of the graphs, in place of their texts."""
        text = self.traced or self.written
        self.before, self.key, self.steps = alike(self.written), alike(text), operations(text)
        self.sizes = _sizes_of(text)
        self.written = self.traced = ""


class CompiledPieces:
    """Collects the pieces while the records of a log are read."""

    def __init__(self) -> None:
        self._open: dict[str, list[_Part]] = {}
        self._frames: dict[str, list[list[_Part]]] = {}
        """By frame of Dynamo its compiles with more than one part."""
        self._outside: list[_Part] = []
        """Parts in no Dynamo compile, since the first with pieces."""
        self._count = 0

    def take(self, record: Record, seconds: float) -> None:
        """One record, with the time of day at which it was written; 0 if that is not known."""
        compile = record.compile or ""
        if record.event == "compilation_metrics" and compile:
            self._close(self._open.pop(compile, []))
            return
        rank = _rank(record.event)
        if rank is None or (not compile and not self._frames):
            return
        parts = self._open.setdefault(compile, [])
        if parts and parts[-1].attempt != record.attempt:
            parts.clear()  # Dynamo began again
        if rank < _LOWERED_RANK and (not parts or rank < parts[-1].rank):
            self._begin(parts, _Part(compile, record.attempt, seconds))
        if parts:
            _note(parts[-1], record, rank, seconds)

    def _begin(self, parts: list[_Part], part: _Part) -> None:
        if self._count >= _MOST:
            return
        if parts:
            parts[-1].read()
        if not part.compile:
            self._outside += parts
            parts.clear()
        if len(self._open) > _MOST_OPEN:  # compiles that never ended
            self._open.pop(next(iter(self._open)))
        parts.append(part)
        self._count += 1

    def _close(self, parts: list[_Part]) -> None:
        if len(parts) > 1:
            parts[-1].read()
            self._frames.setdefault(parts[0].compile.rpartition("/")[0], []).append(parts)

    def folded(self) -> tuple[Piece, ...]:
        """All pieces and sizes; those with the graph of an earlier piece name it."""
        outside = self._open.pop("", [])
        for part in outside:
            part.read()
        self._outside += outside
        for parts in self._open.values():  # of a log that is cut
            self._close(parts)
        self._open.clear()
        found: list[Piece] = []
        for compiles in self._frames.values():
            prefix = f"{compiles[0][0].compile} " if len(self._frames) > 1 else ""
            members = _members(compiles)
            self._outside = _assign(members, self._outside)
            found += _pieces(prefix, members)
        return tuple(found)


def _rank(event: str) -> int | None:
    return _LOWERED_RANK if event.startswith(_LOWERED) else _RANKS.get(event)


def _note(part: _Part, record: Record, rank: int, seconds: float) -> None:
    part.rank = max(part.rank, rank)
    if seconds and part.began:
        part.seconds = round((seconds - part.began) % _DAY, 6)
    if record.event == "before_pre_grad_graph":
        part.written = record.payload
    elif record.event in _TRACED and not part.traced:
        part.traced = record.payload
    elif record.event == "inductor_output_code":
        part.compiled = True
    elif found := _STATE.match(record.event):
        part.cache = max(part.cache, found[1] or found[2], key=lambda state: _STATES.index(state) if state else -1)
        part.compiled = part.compiled or part.cache == "hit"


def _sizes_of(graph: str) -> tuple[str, ...]:
    """The sizes of all tensors among the parameters of a printed graph."""
    head = graph[graph.find("def forward(") :].partition("):\n")[0]
    return tuple(size.strip() for found in _TENSOR.findall(head) for size in found.split(","))[:_MOST_SIZES]


def _members(compiles: Sequence[list[_Part]]) -> list[list[_Part]]:
    """By piece all parts that are this piece: those at the same place of the frame's other compiles, for other sizes."""
    first = compiles[0]
    members = [[part] for part in first]
    for parts in compiles[1:]:
        fits = len(parts) == len(first) and all(a.steps == b.steps for a, b in zip(first, parts, strict=True))
        for at, part in enumerate(parts):
            if fits:
                members[at].append(part)
            else:
                members.append([part])
    return members


def _assign(members: list[list[_Part]], outside: Sequence[_Part]) -> list[_Part]:
    """Gives each part that is in no compile to its piece, in turn where pieces are alike; returns those left over."""
    befores = {piece[0].key: piece[0].before for piece in members if piece[0].before}
    keys = [piece[0].before or befores.get(piece[0].key, "") for piece in members]
    left, after = [], 0
    for part in outside:
        turn = (*range(after, len(keys)), *range(after))
        at = next((at for at in turn if part.before and keys[at] == part.before), None)
        if at is None:
            left.append(part)
        else:
            members[at].append(part)
            after = at + 1
    return left


def _pieces(prefix: str, members: Sequence[list[_Part]]) -> list[Piece]:
    first: dict[str, str] = {}
    found = []
    for index, parts in enumerate(members):
        name = f"{prefix}piece {index}"
        like = first.setdefault(parts[0].key, name) if parts[0].key else name
        for part, values in zip(parts, _varying([part.sizes for part in parts]), strict=True):
            size, smallest, largest = _size(values)
            found.append(
                Piece(
                    index=index, name=name, smallest=smallest, largest=largest, cuda_graph=None, compiled=part.compiled,
                    cache=part.cache, seconds=part.seconds, like=like, size=size, compile=part.compile,
                )
            )  # fmt: skip
    return found


def _varying(sizes: Sequence[tuple[str, ...]]) -> list[tuple[str, ...] | None]:
    """The sizes of each part that are not the same number in all; None if the parameters differ."""
    first = sizes[0]
    same = [one for one in sizes if len(one) == len(first)]
    columns = dict.fromkeys(
        column for column in zip(*same, strict=True) if len(set(column)) > 1 or column[0].isidentifier()
    )
    rows = iter(zip(*columns, strict=True) if columns else [()] * len(same))
    return [next(rows) if len(one) == len(first) else None for one in sizes]


def _size(values: tuple[str, ...] | None) -> tuple[str, int, int | None]:
    """How the matrix calls it, the smallest and the largest."""
    if values is None:
        return "other sizes", 0, None
    numbers = [int(value) for value in values if value.isdecimal() and len(value) < 16]
    if not values:
        return ONE_SIZE, 0, 0
    if not numbers:
        return ANY_SIZE, 0, None
    shown = " × ".join(value if value.isdecimal() else "any" for value in values[:3])
    return shown, numbers[0], numbers[0] if len(numbers) == len(values) else None
