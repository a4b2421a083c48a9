"""A folded graph as lines of text: a node a line with what it takes, modules as indented frames.  For terminals and agents."""

from __future__ import annotations

from collections.abc import Iterator

from irscope.pictures.folding import Box, Frame, Picture
from irscope.pictures.graph import PictureGraph
from irscope.vocabulary.units import count
from irscope.vocabulary.visible import bounded

_LONGEST = 120
"""Characters of a name, or of what a node is."""
_MOST_INPUTS = 24
_ELSEWHERE = "what is left out"


def to_lines(graph: PictureGraph, picture: Picture) -> list[str]:
    """The picture as text: ``relu = relu f32[4, 16] <- linear  model.py:7``; a folded module is in brackets."""
    return list(_Writer(graph, picture).frame(picture.root, (), 0))


class _Writer:
    def __init__(self, graph: PictureGraph, picture: Picture) -> None:
        self._graph = graph
        self._names: list[str] = []
        self._name_boxes(picture.root, ())
        self._inputs: dict[int, list[str]] = {}
        for (source, user), edges in picture.wires.items():
            name = self._names[source] if source < len(self._names) else _ELSEWHERE
            times = f" ×{edges}" if edges > 1 else ""
            self._inputs.setdefault(user, []).append(f"{name}{times}")
        self._at = 0

    def _name_boxes(self, frame: Frame, path: tuple[str, ...]) -> None:
        """In the order of `Frame.boxes`, by which wires number them."""
        for part in frame.parts:
            if isinstance(part, Frame):
                self._name_boxes(part, (*path, part.name))
            elif part.is_folded:
                self._names.append(f"[{bounded('.'.join((*path, part.name)), _LONGEST)}]")
            else:
                self._names.append(bounded(self._graph.nodes[part.nodes[0]].name, _LONGEST))

    def frame(self, frame: Frame, path: tuple[str, ...], depth: int) -> Iterator[str]:
        """Its lines, what is in it below its name."""
        for part in frame.parts:
            if isinstance(part, Box):
                yield "  " * depth + self._box(part)
                continue
            inner = (*path, part.name)
            yield "  " * depth + bounded(".".join(inner), _LONGEST) + (f": {part.type}" if part.type else "")
            yield from self.frame(part, inner, depth + 1)

    def _box(self, box: Box) -> str:
        name, at = self._names[self._at], self._at
        self._at += 1
        if box.is_folded:
            what = f"{box.type}, " if box.type else ""
            head, place = f"{name} {what}{count(len(box.nodes), 'node')}", ""
        else:
            node = self._graph.nodes[box.nodes[0]]
            shape = node.detail.partition("]")[0] + "]" if "]" in node.detail else node.detail
            title = "input" if node.is_input and node.title == node.name else node.title
            words = f"{title} {shape}".strip()
            head, place = f"{name} = {bounded(words, _LONGEST)}", node.place
        taken = self._inputs.get(at, [])
        more = f" and {len(taken) - _MOST_INPUTS} more" if len(taken) > _MOST_INPUTS else ""
        arrow = f" <- {', '.join(taken[:_MOST_INPUTS])}{more}" if taken else ""
        return f"{head}{arrow}{f'  {_last(place)}' if place else ''}"


def _last(place: str) -> str:
    return place.replace("\\", "/").rpartition("/")[2]
