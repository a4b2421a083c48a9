"""Texts of stages with the names in them; the last few are kept."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from irscope.pipelines.registry import role_of, stage_kind
from irscope.protocol import StageRef
from irscope.vocabulary.stages import Role

from irscope_server.base.stage_uris import language_id
from irscope_server.base.texts import split_lines
from irscope_server.stages.linked import RunReader
from irscope_server.stages.names import NameIndex, names_in, names_in_output_code

_MOST_TEXTS = 24


@dataclass(frozen=True)
class StageText:
    """A stage's text with its names."""

    stage: StageRef
    rows: Sequence[str]
    names: NameIndex
    kernels: tuple[tuple[int, int, str], ...] = ()
    """For output code: first and last line (0-based) of each kernel's definition, and the kernel."""
    answers: dict[str, str] = field(default_factory=dict)
    """Big answers as JSON, by name."""


class StageTexts:
    """The last few texts that were asked for.  Belongs to the reader's thread."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str, int], StageText] = OrderedDict()

    def of(self, run: RunReader, stage: StageRef) -> StageText:
        """The text of a stage with its names, read where it is not kept."""
        key = (run.report.run, stage.id, stage.bytes)
        if key not in self._kept:
            self._kept[key] = _read(run, stage)
            while len(self._kept) > _MOST_TEXTS:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return self._kept[key]


def _read(run: RunReader, stage: StageRef) -> StageText:
    rows = split_lines(run.store.stage_text(run.report.run, stage.id))
    language = language_id(stage.language)
    if stage_kind(stage.name).is_graph:
        return StageText(stage, rows, names_in(rows, "python"))
    if role_of(stage.name) is Role.CODE:
        kernels = []
        languages = {kernel.name: kernel.language for kernel in run.report.kernels}
        for item in run.linked.thread.items(stage.id).items:
            element = item.element
            if element.end_line > element.line:
                kernels.append((element.line - 1, element.end_line - 1, element.name))
        index = names_in_output_code(rows, [(a, b, language_id(languages.get(name, ""))) for a, b, name in kernels])
        return StageText(stage, rows, index, tuple(kernels))
    return StageText(stage, rows, names_in(rows, language))
