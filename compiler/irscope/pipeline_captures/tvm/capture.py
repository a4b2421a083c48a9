"""What is captured of TVM: Relax and what its passes make of it, TIR, LLVM IR and assembly."""

from __future__ import annotations

import re
import warnings
from typing import Any

from irscope.capture.programs import NotLoweredError, Program
from irscope.internals.exporting import silence
from irscope.pipeline_captures.export.capture import ExportCapture
from irscope.pipeline_captures.export.in_place import InPlace, draws_random_numbers, returned_view, unfit
from irscope.pipeline_captures.export.programs import decomposed
from irscope.pipeline_captures.export.unsupported import Unsupported
from irscope.pipeline_captures.tvm.building import Built, Passes, build
from irscope.pipeline_captures.tvm.importing import Imported, ImportFailedError, import_program
from irscope.pipeline_captures.tvm.in_place import Executable, unlike
from irscope.pipeline_captures.tvm.rewriting import simpler_for
from irscope.pipeline_captures.tvm.shown import Shown
from irscope.protocol import CaptureGap, Compile

_EXPLANATION = "The program is not compiled; it runs as plain Python."
_HINT = "Write it with other operators, or move it out of the program."


class TvmCapture(ExportCapture):
    """Imports each program into TVM for the CPU; the virtual machine runs in its place where that is the same."""

    def lower(self, program: Program, args: tuple[Any, ...], kwargs: dict[str, Any], compile: Compile) -> Program:
        """Puts the stages of a program; see `ProgramCapture.lower`."""
        exported = self.export(program, args, kwargs, compile)
        core = self.decompose(exported.program, compile)
        if core is None:
            return program
        reason = unfit(core, exported.printed) or _unfit_for_tvm(core)
        try:
            imported = self._imported(core, compile)
            shown = Shown(self.book, compile, self.nodes, core.graph_module, imported.nodes)
            built = self._built(imported, core, shown, compile)
            run = Executable(built.executable, imported.parameters, core, exported.program)
            reason = reason or run.differs(args, kwargs)
        finally:
            self.put_facts(exported.program, reason, compile)
        return program if reason else InPlace(program, run, exported.program, args, kwargs)

    def decomposition(self, made: Any) -> Any:
        """Into core ATen, and what TVM cannot import into what it can."""
        with silence(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return decomposed(made, simpler_for(made))

    def _imported(self, core: Any, compile: Compile) -> Imported:
        """The program in Relax.  Raises NotLoweredError after a finding or a gap."""
        try:
            with silence(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return import_program(core)
        except ImportFailedError as error:
            for node in error.nodes:
                why = error.why.rstrip(".") or "it has no translation of it into Relax"
                self._find(f"TVM cannot import {node.target}: {why}.", node, compile)
            if not error.nodes:
                self.book.gap(CaptureGap(f"Relax of {compile.id}", error.why))
            raise NotLoweredError from error

    def _built(self, imported: Imported, core: Any, shown: Shown, compile: Compile) -> Built:
        """The executable; puts the stages.  Raises NotLoweredError after a finding or a gap."""
        shown.put_first(imported.module.script())
        passes = Passes()
        try:
            built = build(imported.module, passes)
        except Exception as error:
            shown.put_passes(passes)
            self._find_unbuilt(str(error), core, shown, compile)
            raise NotLoweredError from error
        shown.put_passes(passes)
        shown.put_kernels(passes, built)
        return built

    def _find_unbuilt(self, message: str, core: Any, shown: Shown, compile: Compile) -> None:
        """A finding about an operator of Relax that has no code; a gap if TVM failed for another reason."""
        operator = re.search(r"(?:Op\(relax\.|Offending call:\s+R\.)([\w.]+)", message)
        traced = shown.nodes_of(f"relax.{operator[1]}") if operator else []
        for node in [one for one in core.graph.nodes if one.name in traced]:
            self._find(f"TVM cannot compile {node.target}: it has no code for it with these sizes.", node, compile)
        if not traced:
            reason = next((line.strip() for line in message.strip().split("\n") if line.strip()), "no reason given")
            self.book.gap(CaptureGap(f"TIR of {compile.id}", reason))

    def _find(self, message: str, node: Any, compile: Compile) -> None:
        self.find_unsupported(Unsupported("no-tvm-operator", message, _EXPLANATION, (_HINT,)), node, compile)


def _unfit_for_tvm(core: Any) -> str:
    """Why the executable can never take the place of the program; empty if it can."""
    graph = core.graph_module.graph
    if draws_random_numbers(graph):
        return "it draws random numbers, and TVM would draw others or none"
    if returned_view(graph):
        return "it returns an input or a view of one"
    return unlike(core)
