"""What the script exports by itself: each program is a compile of the run, with its graph and the report of draft export."""

from __future__ import annotations

from typing import Any

from irscope.capture.nodes import NodeWriter
from irscope.capture.programs import place_of
from irscope.capture.run_book import RunBook
from irscope.findings import draft_exports
from irscope.internals import script_exports
from irscope.internals.exporting import report_of
from irscope.internals.frames import callers
from irscope.internals.graph_calls import calling_lines
from irscope.internals.hooks import Hook
from irscope.ir.nodes import operation_count
from irscope.pipelines.export import stages
from irscope.protocol import Compile, CompileOutcome, Origin


class ScriptPrograms:
    """Puts the programs that ``torch.export.export`` and ``draft_export`` make for the script."""

    def __init__(self, book: RunBook) -> None:
        self._book = book
        self._nodes = NodeWriter()
        self._count = 0

    def hook(self) -> Hook:
        """What sees the programs."""
        return script_exports.made_programs(self._book.guarded(self._made))

    def _made(self, program: Any, exported: Any, seconds: float) -> None:
        name = f"exported-{self._count}/0"  # each its own frame: none is a recompile of another
        self._count += 1
        data, text = (
            self._nodes.describe(exported.graph_module),
            exported.graph_module.print_readable(print_output=False),
        )
        function, file, line = place_of(program)
        lines = tuple(Origin(*each) for each in dict.fromkeys(calling_lines(callers())))
        self._book.put_compile(
            Compile(
                name, function, file, line, CompileOutcome.COMPILED, 0, operation_count(data, text), round(seconds, 6),
                program=type(program).__name__, callers=lines,
            )
        )  # fmt: skip
        self._book.put_stage(name, stages.EXPORTED_PROGRAM.name, text, data=data)
        if (report := report_of(exported)) is not None:
            told = draft_exports.report_text(draft_exports.issues_of(report, exported), "")
            self._book.put_stage(name, stages.DRAFT_REPORT.name, told)
        for path in dict.fromkeys(path for path, _, _ in data["frames"]):
            self._book.keep_source(path)
