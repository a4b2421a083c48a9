"""What is captured of ``torch.export``: the program before and after decompositions, or why there is none."""

from __future__ import annotations

import dataclasses
from typing import Any

from irscope.capture.nodes import NodeWriter
from irscope.capture.programs import NotLoweredError, Program, ProgramCapture
from irscope.capture.run_book import RunBook
from irscope.findings import draft_exports
from irscope.findings.exporting import finding_of as finding_of_error
from irscope.findings.exporting import first_line
from irscope.internals.exporting import frames_hook, guards_of, report_of
from irscope.internals.hooks import Hook
from irscope.pipeline_captures.export import texts
from irscope.pipeline_captures.export.in_place import InPlace, unfit
from irscope.pipeline_captures.export.programs import Exported, decomposed, export
from irscope.pipeline_captures.export.unsupported import Unsupported, finding_of
from irscope.pipelines.export import stages
from irscope.protocol import CaptureGap, Compile, Origin


class ExportCapture(ProgramCapture):
    """Exports each program; the exported one runs in its place where that is the same."""

    def __init__(self, book: RunBook) -> None:
        super().__init__(book)
        self.nodes = NodeWriter()
        self._unsupported: dict[tuple[Any, ...], dict[str, None]] = {}  # place → the messages there, in their order

    def hooks(self) -> list[Hook]:
        """What takes the script's programs, and what keeps the lines of their nodes."""
        return [*super().hooks(), frames_hook()]

    def lower(self, program: Program, args: tuple[Any, ...], kwargs: dict[str, Any], compile: Compile) -> Program:
        """Exports a program and decomposes it; a finding says why that is not possible."""
        exported = self.export(program, args, kwargs, compile)
        made, core = exported.program, self.decompose(exported.program, compile)
        reason = unfit(core, exported.printed)
        self.put_facts(made, reason, compile)
        return program if reason else InPlace(program, made.module(), made, args, kwargs)

    def export(self, program: Program, args: tuple[Any, ...], kwargs: dict[str, Any], compile: Compile) -> Exported:
        """Exports a program and puts it.  Raises NotLoweredError after it has said why there is none."""
        try:
            exported = export(program, args, kwargs)
        except Exception as error:
            place = self._failed(error, compile)
            self._draft(program, args, kwargs, compile, place)
            raise NotLoweredError from error
        self.put_graph(compile, stages.EXPORTED_PROGRAM.name, exported.program.graph_module)
        return exported

    def decompose(self, made: Any, compile: Compile) -> Any:
        """Decomposes an exported program and puts it; None after a capture gap has said why that is not possible."""
        try:
            core = self.decomposition(made)
        except Exception as error:  # noqa: BLE001  the exported program is there in any case
            what = "the exported program after decompositions"
            self.book.gap(CaptureGap(what, f"{type(error).__name__}: {first_line(error)}"))
            return None
        self.put_graph(compile, stages.DECOMPOSED_PROGRAM.name, core.graph_module)
        return core

    def decomposition(self, made: Any) -> Any:
        """The program after decompositions; a pipeline may have some of its own."""
        return decomposed(made)

    def find_unsupported(self, what: Unsupported, node: Any, compile: Compile) -> None:
        """Puts a finding about a node that the next compiler does not take (`unsupported.finding_of`).

        Several at one place are one finding, with all messages.
        """
        found = finding_of(what, node, compile, self.nodes)
        said = self._unsupported.setdefault(found.cause, {})
        said[found.message] = None
        self.book.findings.add(dataclasses.replace(found, message="\n".join(said)))

    def put_facts(self, made: Any, reason: str, compile: Compile) -> None:
        """Puts the inputs, outputs, guards and dynamic shapes of an exported program.

        Args:
            reason: Why it does not run in place of the script's; empty if it does.
        """
        self.not_called = reason or type(self).not_called
        inputs, outputs = texts.ports_of(made)
        text = texts.signature_text(inputs, outputs)
        if reason:
            text += f"\nThe script goes on with its own program: {reason}.\n"
        self.book.put_stage(compile.id, stages.SIGNATURE.name, text)
        text = texts.constraints_text(texts.symbols_of(made), guards_of(made))
        self.book.put_stage(compile.id, stages.CONSTRAINTS.name, text)

    def put_graph(self, compile: Compile, stage: str, module: Any) -> None:
        """Puts a graph with what is known about its nodes, and keeps the sources of the lines that it names."""
        data = self.nodes.describe(module)
        self.book.put_stage(compile.id, stage, module.print_readable(print_output=False), data=data)
        for file in dict.fromkeys(file for file, _, _ in data["frames"]):
            self.book.keep_source(file)

    # --- why a program cannot be exported -----------------------------------------------------------------------------

    def _failed(self, error: Exception, compile: Compile) -> Origin:
        """Puts the finding and returns its line."""
        why = "The program has no exported form; it runs as plain Python."
        found = finding_of_error(error, why, compile.file, compile.line, (compile.id,))
        self.book.findings.add(found)
        return Origin(found.file, found.range.start.line)

    def _draft(
        self, program: Program, args: tuple[Any, ...], kwargs: dict[str, Any], compile: Compile, known: Origin
    ) -> None:
        """Puts what draft export says of a program that cannot be exported."""
        issues, failure = [], ""
        try:
            made = export(program, args, kwargs, draft=True).program
            issues = draft_exports.issues_of(report_of(made), made)
        except Exception as error:  # noqa: BLE001  draft export cannot trace everything either
            failure = f"{type(error).__name__}: {first_line(error)}"
        self.book.put_stage(compile.id, stages.DRAFT_REPORT.name, draft_exports.report_text(issues, failure))
        function = Origin(compile.file, compile.line)
        for finding in draft_exports.findings_of(issues, function, (compile.id,), known):
            self.book.findings.add(finding)
