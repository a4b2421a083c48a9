"""What is captured of ONNX: the exported model, its optimized form, and the graphs of ONNX Runtime."""

from __future__ import annotations

import importlib
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from irscope.capture.operation_graphs import Operation, Tensor, files_of, written_graph
from irscope.capture.programs import NotLoweredError, Program
from irscope.capture.rewrites import inherited, sources_of
from irscope.internals.exporting import silence, unflatten, untranslated_node
from irscope.pipeline_captures.export.capture import ExportCapture
from irscope.pipeline_captures.export.in_place import InPlace, unfit
from irscope.pipeline_captures.export.programs import Exported
from irscope.pipeline_captures.export.unsupported import Unsupported
from irscope.pipeline_captures.onnx import sessions
from irscope.pipeline_captures.onnx.models import RANDOM, ModelReader, node_names, node_of, operators_of, result_names
from irscope.pipelines.export import stages as export_stages
from irscope.pipelines.onnx import stages
from irscope.protocol import CaptureGap, Compile
from irscope.system.commands import temporary_folder
from irscope.vocabulary.stages import StageKind

_NO_KERNEL = (
    re.compile(r"implementation for ([\w.:]+)\(\d+\) node with name '([^']*)'"),
    re.compile(r"of operator \(([\w.:]+)\) in node \(([^)]*)\) is invalid"),  # ONNX itself does not have such types
)
"""How ONNX Runtime names an operator and a node that it cannot run."""


class OnnxCapture(ExportCapture):
    """Exports each program to ONNX and loads it into ONNX Runtime, whose session runs in its place where it is safe."""

    def lower(self, program: Program, args: tuple[Any, ...], kwargs: dict[str, Any], compile: Compile) -> Program:
        """Puts the stages of a program; see `ProgramCapture.lower`."""
        exported = self.export(program, args, kwargs, compile)
        made = self._translated(exported, compile)
        self.put_graph(compile, export_stages.DECOMPOSED_PROGRAM.name, made.exported_program.graph_module)
        reason = unfit(made.exported_program, exported.printed)
        shown = _Shown(self, made, compile)
        shown.put(stages.MODEL, made.model)
        with silence():
            made.optimize()
        shown.put(stages.OPTIMIZED, made.model)
        if not reason and operators_of(made.model) & RANDOM:
            reason = "it draws random numbers, and ONNX Runtime would draw others"
        self.put_facts(exported.program, reason, compile)
        with temporary_folder() as folder:
            session = self._loaded(made, shown, exported, folder, compile)
            sizes = self._profiled(session, lambda: made(*args, **kwargs), compile)
        shown.put(stages.ALL, shown.last, sizes)
        run = _Runnable(made)
        return program if reason else InPlace(program, run, exported.program, args, kwargs)

    def _translated(self, exported: Exported, compile: Compile) -> Any:
        """PyTorch's ``ONNXProgram``, not optimized.  Raises NotLoweredError after a finding."""
        export: Any = importlib.import_module("torch.onnx").export
        try:
            with silence(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return export(exported.program, dynamo=True, optimize=False, verbose=False)
        except Exception as error:
            self._find_untranslated(error, compile)
            raise NotLoweredError from error

    def _find_untranslated(self, error: BaseException, compile: Compile) -> None:
        node = untranslated_node(error)
        if node is None:
            self.book.gap(CaptureGap(f"the ONNX model of {compile.id}", f"{type(error).__name__}: {error}"))
            return
        finding = Unsupported(
            "no-onnx-function",
            f"ONNX has no translation of the operator {node.target}.",
            "The program cannot be exported to ONNX; it runs as plain Python.",
            ("Give torch.onnx.export a translation (custom_translation_table), or write it with other operators.",),
        )
        self.find_unsupported(finding, node, compile)

    def _loaded(self, made: Any, shown: _Shown, exported: Exported, folder: str, compile: Compile) -> Any:
        """The session with all optimizations, which the exported program uses.  Raises NotLoweredError after a finding."""
        program = exported.program
        devices = sessions.devices_of([*program.state_dict.values(), *program.constants.values()])

        def loaded(model: bytes | str) -> Any:
            opened = sessions.Sessions(model, folder, devices)
            for level, kind in stages.LEVELS.items():
                shown.put(kind, opened.graph_of(level))
            session, shown.last = opened.to_run(stages.RUNS_AT)
            found.append(session)
            return session

        found: list[Any] = []
        try:
            made.initialize_inference_session(loaded)  # it writes the whole model: once
        except Exception as error:
            self._find_no_kernel(error, made, compile)
            raise NotLoweredError from error
        return found[0]

    def _find_no_kernel(self, error: BaseException, made: Any, compile: Compile) -> None:
        found = next((match for one in _NO_KERNEL if (match := one.search(str(error)))), None)
        if found is None:
            self.book.gap(CaptureGap(f"ONNX Runtime's graph of {compile.id}", f"{type(error).__name__}: {error}"))
            return
        traced = node_of(made.model, found[2])
        node = next((one for one in made.exported_program.graph.nodes if one.name == traced), None)
        finding = Unsupported(
            "no-runtime-kernel",
            f"ONNX Runtime has no kernel for the operator {found[1]} with these data types.",
            "The model cannot be loaded; the program runs as plain Python.",
            ("Use another data type: most kernels of the runtime are for float32.",),
        )
        self.find_unsupported(finding, node, compile)

    def _profiled(self, session: Any, run: Callable[[], object], compile: Compile) -> dict[str, Tensor]:
        """Puts where nodes ran and for how long; returns what is known about their first results."""
        try:
            runs = sessions.profile(session, run)
        except Exception as error:  # noqa: BLE001  the graphs are there
            self.book.gap(CaptureGap(f"the times of {compile.id}", f"{type(error).__name__}: {error}"))
            return {}
        text = sessions.providers_text(runs, session.get_providers())
        self.book.put_stage(compile.id, stages.PROVIDERS.name, text)
        self.book.put_stage(compile.id, stages.TIMES.name, sessions.times_text(runs))
        return {one.name: one.value for one in runs if one.value is not None}


class _Runnable:
    """Calls a session as the user's program was called."""

    def __init__(self, made: Any) -> None:
        self._made = made
        self._spec = made.exported_program.call_spec.out_spec

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it."""
        results = list(self._made(*args, **kwargs))
        return unflatten(results, self._spec)


class _Shown:
    """Writes the graphs of one program, each with what it came from in the one before."""

    def __init__(self, capture: OnnxCapture, made: Any, compile: Compile) -> None:
        self._capture, self._compile = capture, compile
        program = made.exported_program
        self._reader = ModelReader(capture.nodes, _values_of(program))
        self._above = capture.nodes.number(id(program.graph_module.graph))
        self._before: list[Operation] = []
        self._nodes: dict[str, str] = {}  # of the graph before: name of a node → name of its first result
        self._held: list[Any] = [made]  # an address is not used again
        self.last: Any = None

    def put(self, kind: StageKind, model: Any, shapes: dict[str, Tensor] | None = None) -> None:
        """Writes the graph of a model."""
        operations = self._reader.read(model, shapes)
        if self._before:
            operations = list(self._linked(operations, model))
        number = self._capture.nodes.number(id(model))
        self._held.append(model)
        text, data = written_graph("Model", number, operations, self._above, kind.title)
        book = self._capture.book
        book.put_stage(self._compile.id, kind.name, text, data=data)
        for file in files_of(operations):
            book.keep_source(file)
        self._above, self._before, self._nodes = number, operations, node_names(model)

    def _linked(self, operations: list[Operation], model: Any) -> Iterator[Operation]:
        made_by = {self._reader.name_of(value): node for value, node in result_names(model).items()}

        def hint(one: Operation) -> str:
            return self._stands_for(made_by.get(one.name, ""))

        sources = sources_of(self._before, operations, hint)
        before = {one.name: one for one in self._before}
        for one in operations:
            yield inherited(one, sources, before)

    def _stands_for(self, node: str) -> str:
        """ONNX Runtime calls a node of a blocked layout by the value that it stands for: ``relu_nchwc``; one that it
        copies keeps its name."""
        stem = re.sub(r"(_token_\d+)+$", "", node)
        value = stem.removesuffix("_nchwc") if stem.endswith("_nchwc") else self._nodes.get(stem, "")
        return self._reader.name_of(value) if value else ""


def _values_of(program: Any) -> dict[str, str]:
    """Name in the ONNX model → node of the exported program: of parameters, buffers and constants."""
    signature = program.graph_signature
    inputs = {spec.target: spec.arg.name for spec in signature.input_specs if spec.target}
    return {**{name: name for name in signature.user_inputs if isinstance(name, str)}, **inputs}
