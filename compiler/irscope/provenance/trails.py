"""What came from a line, kept for large runs so that following one line does not read all their stages.

Kept of a compile is one JSON object, in which everything has a number: its place in the order of the pipeline.

===========  ===========================================================================================================
key          value
===========  ===========================================================================================================
``version``  `_VERSION`; anything else is not read
``stages``   ``[id, how many elements]``, in the order of the pipeline
``names``    of all elements, stage by stage
``lines``    the line of each in the text of its stage; ``ends``: how many lines more it has
``places``   ``[file, line]`` of the user's lines, and of those of libraries
``from``     for each element that came from lines directly its number and those of its places
``counts``   how many parents each element has
``up``       for each of these how many elements before it the parent is
``words``    why something became nothing, each once; ``fates``: the number of an element and that of its words
===========  ===========================================================================================================
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from irscope.pipelines.registry import role_of
from irscope.protocol import Compile, Report
from irscope.provenance import SOURCE, Provenance
from irscope.provenance.elements import Element
from irscope.store.store import Store
from irscope.vocabulary.stages import Role

_VERSION = 2
_LARGE = 4000
"""Elements of graphs in a run; fewer are read in a tenth of a second."""


class Reached(NamedTuple):
    """What a stage has of a line.

    Args:
        elements: Each with why it became nothing further down: empty if it became something.
        names: Names of all elements of the stage.
    """

    elements: tuple[tuple[Element, str], ...]
    names: Sequence[str]


def is_large(report: Report) -> bool:
    """Whether it takes long to follow a line without what is kept here."""
    return sum(stage.nodes or 0 for c in report.compiles for stage in c.stages if not stage.passed) >= _LARGE


def keep_trails(store: Store, run: str) -> None:
    """Keeps what `reached` needs of a run that has ended, if it is large and none of it is kept yet."""
    if not store.has_trails(run) and is_large(report := store.report(run, sizes=False)):
        thread = Provenance(store, report, ends=False)
        for compile in report.compiles:
            store.put_trails(run, compile.id, _trails_of(thread, compile))


def reached(store: Store, report: Report, file: str, line: int) -> dict[str, Reached]:
    """All that came from a line, by stage along the pipeline of each compile: in graphs, Inductor's IR, output code; of
    a hand-written kernel, in its text and all that is below it."""
    kept = store.trails(report.run) if is_large(report) else {}
    thread = Provenance(store, report, ends=False)
    found: dict[str, Reached] = {}
    below: dict[str, tuple[Element, ...]] | None = None
    ends: Provenance | None = None
    for compile in report.compiles:
        own = thread.lines.in_own_kernels(compile.id, file, line)
        if own:
            ends = ends or Provenance(store, report)
            found.update(_lowered(ends, compile.id, own))
        if compile.id.startswith("triton/"):
            continue
        read = _read(kept.get(compile.id), file, line)
        if read is not None and read.keys() <= {stage.id for stage in thread.pipeline(compile.id)}:
            found.update(read)
            continue
        if below is None:
            below = thread.below(thread.source(file, line))
        for stage in thread.pipeline(compile.id):
            if stage.id in below:
                last = role_of(stage.name) is Role.CODE
                elements = tuple((one, "" if last else thread.fate(one)) for one in below[stage.id])
                found[stage.id] = Reached(elements, [one.name for one in thread.elements(stage.id)])
    return found


def _lowered(thread: Provenance, compile: str, own: Iterable[Element]) -> Iterator[tuple[str, Reached]]:
    below: dict[str, dict[Element, None]] = {}
    for line in own:
        for stage, elements in {line.stage: (line,), **thread.below(line)}.items():
            below.setdefault(stage, {}).update(dict.fromkeys(elements))
    for ref in thread.pipeline(compile):
        if ref.id in below:
            names = [one.name for one in thread.elements(ref.id)]
            yield ref.id, Reached(tuple((one, "") for one in below[ref.id]), names)


def _trails_of(thread: Provenance, compile: Compile) -> dict[str, Any]:
    stages = [(stage, thread.elements(stage.id)) for stage in thread.pipeline(compile.id)]
    everything = [element for _, elements in stages for element in elements]
    first = {*thread.lines.first_stages(compile.id), thread.lines.runners(compile.id)[0]}
    ancestry, without_children = _ancestry(thread, everything, first)
    code = {stage.id for stage, _ in stages if role_of(stage.name) is Role.CODE}
    last = ((number, everything[number]) for number in sorted(without_children))
    words, fates = _fates(thread, ((number, element) for number, element in last if element.stage not in code))
    return {
        "version": _VERSION,
        "stages": [[stage.id, len(elements)] for stage, elements in stages],
        "names": [element.name for element in everything],
        "lines": [element.line for element in everything],
        "ends": [element.end_line - element.line for element in everything],
        **ancestry,
        "words": words,
        "fates": fates,
    }


def _ancestry(
    thread: Provenance, everything: Sequence[Element], first: Collection[str]
) -> tuple[dict[str, Any], set[int]]:
    """What each element came from; and the numbers of those that nothing came from.  ``first``: the stages that are made
    from the source itself."""
    numbers = {(element.stage, element.name): number for number, element in enumerate(everything)}
    places: dict[tuple[str, int], int] = {}
    roots: list[list[int]] = []
    counts: list[int] = []
    up: list[int] = []
    without_children = set(range(len(everything)))
    for number, element in enumerate(everything):
        above = thread.parents(element)
        told = [(p.file, p.line) for p in above if p.stage == SOURCE]
        told += [(p.file, p.line) for p in thread.further_lines(element)] if element.stage in first else []
        lines = [places.setdefault(place, len(places)) for place in told]
        if lines:
            roots.append([number, *lines])
        parents = [numbers[p.stage, p.name] for p in above if p.stage != SOURCE]
        without_children.difference_update(parents)
        counts.append(len(parents))
        up += [number - parent for parent in parents]
    ancestry = {"places": [list(place) for place in places], "from": roots, "counts": counts, "up": up}
    return ancestry, without_children


def _fates(thread: Provenance, last: Iterable[tuple[int, Element]]) -> tuple[list[str], list[list[int]]]:
    """Why elements became nothing further down: sentences, and the number of each element with that of its sentence."""
    words: dict[str, int] = {}
    fates = [
        [number, words.setdefault(why, len(words))] for number, element in last if (why := thread.fate_of_last(element))
    ]
    return list(words), fates


def _read(trails: Any, file: str, line: int) -> dict[str, Reached] | None:
    """None if there is none, or it is of another version, or from elsewhere and not what it should be."""
    try:
        return dict(_below(trails, [file, line])) if trails["version"] == _VERSION else None
    except (LookupError, TypeError, ValueError):
        return None


def _below(trails: Any, place: list[object]) -> Iterator[tuple[str, Reached]]:
    names, lines, ends, up = trails["names"], trails["lines"], trails["ends"], trails["up"]
    fates = {number: str(trails["words"][why]) for number, why in trails["fates"]}
    if place not in trails["places"]:
        return
    if sum(size for _, size in trails["stages"]) != len(names):
        raise ValueError("of other elements than those of its stages")
    wanted = trails["places"].index(place)
    there = bytearray(len(names))
    for number, *places in trails["from"]:
        if wanted in places:
            there[number] = 1
    at = 0
    for number, count in enumerate(trails["counts"]):  # parents are before their children
        if count == 1:
            if there[number - up[at]]:
                there[number] = 1
        else:
            for step in up[at : at + count]:
                if there[number - step]:
                    there[number] = 1
                    break
        at += count
    start = 0
    for stage, size in trails["stages"]:
        mine = [
            (
                Element(stage, str(names[number]), top := int(lines[number]), top + int(ends[number])),
                fates.get(number, ""),
            )
            for number in range(start, start + size)
            if there[number]
        ]
        if mine:
            mine.sort(key=lambda one: (one[0].line, one[0].name))
            yield stage, Reached(tuple(mine), names[start : start + size])
        start += size
