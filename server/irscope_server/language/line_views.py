"""What is known about the lines of an open file, placed in its text as it is now: for inlay hints, regions and hovers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from irscope.protocol import Kernel
from irscope.vocabulary import units

from irscope_server.base.functions import Function, Outline, outline_of
from irscope_server.base.line_map import LineMap
from irscope_server.base.texts import FileKey
from irscope_server.language.context import SourceContext
from irscope_server.language.line_facts import LineFacts, Op
from irscope_server.running.results import Ended

_MOST_OTHERS = 4
"""Runs of other entries whose graphs are looked through for a file."""
_MOST_OF_NAME, _END_OF_NAME = 48, 12


@dataclass(frozen=True)
class LineView:
    """A file in the newest run that has results for its lines.

    Args:
        lines: The file's lines as they ran.
        line_map: From these to the text as it is now.
        stale: A file of the run was edited since.
    """

    key: FileKey
    ended: Ended
    facts: LineFacts
    lines: Sequence[str]
    line_map: LineMap
    stale: bool

    @property
    def text(self) -> str:
        """The current text of the file."""
        return "\n".join(self.lines)

    @property
    def outline(self) -> Outline | None:
        """The functions of the text as it ran."""
        return outline_of(self.text)

    def ops_at(self, lines: range) -> list[Op]:
        """The operations from lines of the text as it ran (0-based), in the order of their graphs."""
        of_file = self.facts.ops.get(self.key, {})
        return [op for line in lines for op in of_file.get(line + 1, ())]

    def is_intact(self, function: Function) -> bool:
        """Whether a function is in the text now as it ran, wherever it is."""
        places = [self.line_map.exact(line) for line in range(function.first_line - 1, function.end_line)]
        first = places[0]
        return first is not None and places == list(range(first, first + len(places)))


async def line_view(context: SourceContext, key: FileKey) -> LineView | None:
    """The newest run that has results for a file's lines: of what runs the file, else of another entry."""
    results = context.results
    own = results.newest(context.key_of(key))
    seen: set[str] = set()
    touching = [*results.runs_touching(key), *results.deep_runs_touching(key)]
    # What is only called by compiled functions is in no list of compiles: a layer of a model in its own file.
    for ended in [*([own] if own else []), *touching, *results.newest_of_all()[:_MOST_OTHERS]]:
        if ended.run in seen:
            continue
        seen.add(ended.run)
        facts = await context.line_facts.of(ended)
        if any(key in known for known in (facts.ops, facts.functions, ended.compiles, ended.callers)):
            now = context.texts.lines(key)
            # A file of which only functions were called is not among the texts that the run was started with.
            ran = ended.texts.get(key) or facts.texts.get(key) or now
            line_map = context.views.line_map(ran, now)
            stale = context.texts.are_edited(ended.texts) or list(ran) != list(now)
            return LineView(key, ended, facts, ran, line_map, stale)
    return None


def kernels_text(kernels: Sequence[Kernel]) -> str:
    """``2 kernels and 1 library call``."""
    generated = sum(kernel.is_generated for kernel in kernels)
    return units.kernels(generated, len(kernels) - generated)


def short_kernel(name: str) -> str:
    """Beginning and end of a kernel's name: it lists all its operations, and the number at its end tells it from others."""
    return name if len(name) <= _MOST_OF_NAME else f"{name[: _MOST_OF_NAME - _END_OF_NAME - 1]}…{name[-_END_OF_NAME:]}"


def kernels_by_line(context: SourceContext, key: FileKey) -> tuple[str, dict[int, tuple[Kernel, ...]]]:
    """The newest deep run that has results for a file, and the kernels of each line (0-based, as the text is now) in it.

    A line that was edited has none; a kernel that is called twice is there once.
    """
    for deep in context.results.deep_runs_touching(key):
        line_map = context.views.line_map(deep.texts.get(key), context.texts.lines(key))
        by_line = {
            line: tuple({(kernel.stage, kernel.name): kernel for kernel in kernels}.values())
            for ran, kernels in deep.kernels.get(key, {}).items()
            if (line := line_map.exact(ran - 1)) is not None
        }
        if by_line:
            return deep.run, by_line
    return "", {}


def kernels_of_lines(context: SourceContext, key: FileKey, lines: Iterable[int]) -> tuple[str, tuple[Kernel, ...]]:
    """The run and the kernels of several lines (0-based, as the text is now), each once."""
    run, by_line = kernels_by_line(context, key)
    found = {(kernel.stage, kernel.name): kernel for line in lines for kernel in by_line.get(line, ())}
    return run, tuple(found.values())
