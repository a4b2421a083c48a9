"""Where the compile time went, as a tree: what was compiled, then the phases of the compiler."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from irscope.ir.phases import Phase
from irscope.measures.tree import Measure, Path, PathPart, PathTree, text_columns, text_rows, tree_of
from irscope.protocol import Compile

TIME = Measure("compile time", "seconds")
BESIDE = Measure("other threads", "seconds")
"""What ran beside the thread that compiles, so that it does not count."""


def compile_time_tree(compiles: Iterable[Compile], trees: Mapping[str, Sequence[Phase]]) -> PathTree:
    """The compile time by what was compiled and by phase; recompilations, and phases of one name at one place, are added
    up and counted: ``compile_file ×2``.

    Args:
        trees: The phases of each compile, by its ID.
    """
    return _tree(
        "this run",
        [
            part
            for compile in compiles
            if compile.id in trees
            for part in _parts(
                (PathPart(compile.title, "", compile.file, compile.line),), trees[compile.id], compile.seconds
            )
        ],
    )


def phases_text(phases: Sequence[Phase]) -> str:
    """The phases of one compile as an aligned tree, the longest first: the numbers of each, and its name."""
    tree = _tree("compile", list(_parts((), phases)))
    rows = [[*text_columns(tree, "share"), "phase"]]
    for name, *numbers in text_rows(tree, len(tree.nodes), tree.nodes[0].inclusive[0]):
        rows.append([*numbers, name.replace("\u00a0", " ")])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "".join(
        "  ".join([*(cell.rjust(width) for cell, width in zip(row[:-1], widths, strict=False)), row[-1]]) + "\n"
        for row in rows
    )


def _tree(whole: str, parts: Iterable[tuple[Path, bool, float]]) -> PathTree:
    times: Counter[Path] = Counter()
    values: dict[Path, list[float]] = {}
    for path, beside, seconds in parts:
        times[path] += 1
        values.setdefault(path, [0.0, 0.0])[beside] += seconds
    measures = (TIME, BESIDE) if any(row[1] for row in values.values()) else (TIME,)
    rows = {_counted(path, times): row[: len(measures)] for path, row in values.items()}
    return tree_of(whole, measures, rows)


def _parts(top: Path, phases: Sequence[Phase], seconds: float = 0.0) -> Iterator[tuple[Path, bool, float]]:
    """The path of a compile and of each of its phases, whether it ran in another thread, and its own seconds.

    Their sum is the compile's ``seconds``, as everywhere else, where these are known: PyTorch counts a little less than its
    outermost phases last, and not all that it counts is in a phase.  What is around the whole compile has no row: not all runs
    have it, and two of them could not be compared.
    """
    around_all = {phase.parent for phase in phases if phase.name == "entire_frame_compile"}
    paths: list[Path] = []
    over = sum(phase.own for phase in phases if not phase.track) - seconds if seconds else 0.0
    outer = sum(phases[number].own for number in around_all if 0 <= number < len(phases))
    yield top, False, max(0.0, outer - over)
    over = max(0.0, over - outer)
    for number, phase in enumerate(phases):
        around = paths[phase.parent] if 0 <= phase.parent < len(paths) else top
        if number in around_all:
            paths.append(around)
            continue
        paths.append((*around, PathPart(phase.name, phase.label)))
        less = 0.0 if phase.track else min(phase.own, max(0.0, over))
        over -= less
        yield paths[-1], phase.track > 0, phase.own - less


def _counted(path: Path, times: Mapping[Path, int]) -> Path:
    """The path with how often there was each part of it, where that is more than once."""
    numbers = (times[path[: depth + 1]] for depth in range(len(path)))
    return tuple(
        part._replace(name=f"{part.name} ×{number}") if number > 1 else part
        for part, number in zip(path, numbers, strict=True)
    )
