"""The finding of an allocation for which there was no memory: what was asked for, and the lines that hold most."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping

from irscope.findings.kinds.memory_at_peak import KIND
from irscope.measures.tree import Path, PathPart
from irscope.pipelines.registry import stage_kind
from irscope.profiling.buffer_places import BufferPlaces
from irscope.profiling.step_memory import VARIABLES
from irscope.protocol import Compile, Finding, HeldTensor, OutOfMemory, Raised, Related, Report, Severity
from irscope.provenance import chain
from irscope.provenance.linked import LinkedLines
from irscope.store.store import Store
from irscope.usercode.source import range_of_line
from irscope.usercode.user_files import is_user_file
from irscope.vocabulary.units import size

CODE = "out-of-memory"
_MOST_LINES, _MOST_NAMES = 3, 3
_HINTS = (
    "`irscope profile --memory` with a smaller batch says what each line and module holds at the peak of a step.",
    "Held for the backward: `torch.utils.checkpoint` around a part computes it again instead.",
)

Codes = Mapping[str, tuple[Compile, str]]
"""The files of output code, with their compiles and stages."""


def out_of_memory(
    memory: OutOfMemory, raised: Raised, inside: Finding | None, store: Store, report: Report, codes: Codes
) -> Finding | None:
    """The finding of an error, at the operation that needed the memory; None if no line of the user's leads to it.

    Args:
        inside: The finding of an error inside compiled code, whose place is taken; None if the error was outside of it.
    """
    places = BufferPlaces(store, report)
    lines, others = _by_line(memory, places, LinkedLines(store, report), codes)
    asked = f"{size(memory.asked)} were to be allocated here" if memory.asked is not None else "allocating here failed"
    named = [(f"{file.rpartition('/')[2]}:{line}", held) for (file, line), held in lines] + others
    most = [f"{words} ({size(held)})" for words, held in sorted(named, key=lambda one: -one[1])]
    message = f"Out of memory: {asked}, beside {size(memory.held_bytes)} that are known to be held"
    message += f". Most of it: {', '.join(most[:_MOST_LINES])}." if most else "."
    related = tuple(Related(file, range_of_line(file, line), f"holds {size(held)}") for (file, line), held in lines)
    if inside is None:
        frame = next((one for one in reversed(raised.stack) if is_user_file(one.file)), None)
        if frame is None:
            return None
        where = frame.range or range_of_line(frame.file, frame.line)
        return Finding(KIND.id, CODE, Severity.ERROR, message, "", _HINTS, None, frame.file, where, 1, (), related)
    found = dataclasses.replace(
        inside, kind=KIND.id, code=CODE, message=message, hints=_HINTS, related=(*related, *inside.related)
    )
    frame = next((one for one in reversed(raised.stack) if one.file in codes), None)
    place = places.at(codes[frame.file][1], frame.line) if frame is not None else None
    if place is None or (origin := _users(place.frames)) is None:
        return found
    return dataclasses.replace(found, file=origin[0], range=range_of_line(*origin))


def _by_line(
    memory: OutOfMemory, places: BufferPlaces, linked: LinkedLines, codes: Codes
) -> tuple[list[tuple[tuple[str, int], int]], list[tuple[str, int]]]:
    """The lines that hold most, and what else does; each with its bytes."""
    lines, others = Counter[tuple[str, int]](), Counter[str]()
    for tensor in memory.held:
        place = _line_of(tensor, places, linked, codes)
        if place is not None:
            lines[place] += tensor.bytes
        else:
            others[f"`{tensor.name}`" if tensor.kind == VARIABLES else tensor.kind] += tensor.bytes
    return lines.most_common(_MOST_LINES), others.most_common(_MOST_NAMES)


def _line_of(tensor: HeldTensor, places: BufferPlaces, linked: LinkedLines, codes: Codes) -> tuple[str, int] | None:
    """The user's line that made what a variable of output code holds."""
    if tensor.file not in codes:
        return None
    compile, stage = codes[tensor.file]
    place = places.named(stage, tensor.name)
    frames = place.frames if place is not None else tuple(_frames_of_node(compile, stage, tensor.name, linked))
    return _users(frames)


def _users(frames: Path) -> tuple[str, int] | None:
    """The innermost line of the user's among call frames."""
    return next(((part.file, part.line) for part in reversed(frames) if is_user_file(part.file)), None)


def _frames_of_node(compile: Compile, stage: str, name: str, linked: LinkedLines) -> Iterator[PathPart]:
    """The lines of a node that the forward has saved: the backward's code gets it as an argument of that name."""
    code = next(one for one in compile.stages if one.id == stage)
    for one in linked.thread.pipeline(compile.id):
        if stage_kind(one.name).is_graph and not chain.is_backward(one) and chain.is_backward(code):
            item = linked.thread.items(one.id).by_name.get(name)
            for key in linked.keys_of_item(item) if item is not None else ():
                yield PathPart(name, "", key.file, key.line)
