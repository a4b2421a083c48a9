"""What is captured of OpenVINO: the converted model, the passes that change it, and the runtime graph."""

from __future__ import annotations

import importlib
import os
import re
import warnings
from collections.abc import Iterator
from typing import Any

from irscope.capture.operation_graphs import Operation, files_of, written_graph
from irscope.capture.programs import NotLoweredError, Program
from irscope.capture.versions import WrittenGraph, put_version
from irscope.internals.exporting import silence
from irscope.pipeline_captures.export.capture import ExportCapture
from irscope.pipeline_captures.export.in_place import InPlace, draws_random_numbers, unfit
from irscope.pipeline_captures.export.programs import decomposed, drop_guards
from irscope.pipeline_captures.export.unsupported import Unsupported
from irscope.pipeline_captures.openvino.models import Layer, ModelReader, read_layers
from irscope.pipeline_captures.openvino.passes import passes_of
from irscope.pipeline_captures.openvino.running import Runnable, unlike
from irscope.pipelines.export import stages as export_stages
from irscope.pipelines.openvino import stages
from irscope.protocol import CaptureGap, Compile
from irscope.system.commands import temporary_folder

CONFIGURATION = {"INFERENCE_PRECISION_HINT": "f32"}
"""OpenVINO may else compute float32 in bfloat16."""


class OpenVinoCapture(ExportCapture):
    """Converts each program for OpenVINO's CPU plugin; the compiled model runs in its place where that is safe."""

    def lower(self, program: Program, args: tuple[Any, ...], kwargs: dict[str, Any], compile: Compile) -> Program:
        """Puts the stages of a program; see `ProgramCapture.lower`."""
        exported = self.export(program, args, kwargs, compile)
        openvino: Any = importlib.import_module("openvino")
        with silence(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            decoder = importlib.import_module("openvino.frontend.pytorch.fx_decoder").TorchFXPythonDecoder
            source = _Decomposing(exported.program)
            traced = decoder.from_exported_program(source)
            core = source.core
            if core is None or draws_random_numbers(core.graph):  # OpenVINO keeps operators that may, such as rrelu
                core = decomposed(exported.program)
        drop_guards(traced.pt_module)
        self.put_graph(compile, export_stages.DECOMPOSED_PROGRAM.name, traced.pt_module)
        model = self._converted(openvino, traced, compile)
        runnable = Runnable(model, traced.pt_module, exported.program)
        shown = _Shown(self, traced.pt_module, compile)
        shown.put(stages.MODEL.name, _layers(openvino, model))
        self._put_passes(openvino, model, shown, compile)
        runnable.compiled = self._loaded(openvino, model, compile)
        shown.put(stages.RUNTIME.name, _layers(openvino, runnable.compiled.get_runtime_model()))
        reason = unfit(core, exported.printed) or unlike(model, runnable, core)
        self.put_facts(exported.program, reason, compile)
        return program if reason else InPlace(program, runnable, exported.program, args, kwargs)

    def _converted(self, openvino: Any, traced: Any, compile: Compile) -> Any:
        try:
            with silence(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return openvino.convert_model(traced)
        except Exception as error:
            self._find_unconverted(str(error), traced.pt_module, compile)
            raise NotLoweredError from error

    def _find_unconverted(self, message: str, module: Any, compile: Compile) -> None:
        listed = re.search(r"No conversion rule found for operations: (.*)", message)
        operators = [name.strip() for name in listed[1].split(",")] if listed else []
        if not operators:
            self.book.gap(CaptureGap(f"OpenVINO's model of {compile.id}", message.strip().rpartition("\n")[2]))
        for operator in operators:
            finding = Unsupported(
                "no-openvino-rule",
                f"OpenVINO has no rule for the operator {operator}.",
                "The program cannot be converted; it runs as plain Python.",
                ("Write it with other operators, or give OpenVINO an extension that converts it.",),
            )
            node = next((one for one in module.graph.nodes if str(one.target) == operator), None)
            self.find_unsupported(finding, node, compile)

    def _put_passes(self, openvino: Any, model: Any, shown: _Shown, compile: Compile) -> None:
        try:
            changes = passes_of(model, openvino)
        except Exception as error:  # noqa: BLE001  the other stages need no passes
            self.book.gap(CaptureGap(f"the passes of {compile.id}", f"{type(error).__name__}: {error}"))
            return
        for number, one in enumerate(changes):
            shown.put_pass(one.name, number, read_layers(one.text))
        shown.put_last(stages.TRANSFORMED.name)

    def _loaded(self, openvino: Any, model: Any, compile: Compile) -> Any:
        try:
            return openvino.compile_model(model, "CPU", CONFIGURATION)
        except Exception as error:
            reason = next((line for line in reversed(str(error).splitlines()) if line.strip()), "no reason given")
            self.book.gap(CaptureGap(f"the runtime graph of {compile.id}", reason))
            raise NotLoweredError from error


class _Decomposing:
    """An exported program that keeps what OpenVINO decomposes it into: to decompose it once more takes as long as the
    compile."""

    def __init__(self, exported: Any) -> None:
        self._exported = exported
        self.core: Any = None

    def run_decompositions(self, *table: Any) -> Any:
        """Like that of PyTorch's ``ExportedProgram``."""
        self.core = self._exported.run_decompositions(*table)
        return self.core


def _layers(openvino: Any, model: Any) -> list[Layer]:
    with temporary_folder() as folder:
        path = os.path.join(folder, "model.xml")
        openvino.serialize(model, path)
        with open(path, encoding="utf-8", errors="replace") as file:
            return read_layers(file.read())


class _Shown:
    """Writes the graphs of one program, each with what it came from in the one before."""

    def __init__(self, capture: OpenVinoCapture, module: Any, compile: Compile) -> None:
        self._capture, self._book, self._compile = capture, capture.book, compile
        program = list(_operations_of(module, capture))
        self._above = capture.nodes.number(id(module.graph))
        self._reader = ModelReader(program)
        self._held: list[Any] = [module]  # an address is not used again
        self._last = WrittenGraph("", {}, {})

    def put(self, kind: str, layers: list[Layer]) -> None:
        """Writes a stage."""
        for name in [one.name for one in layers if one.has_body]:
            why = "only operations outside of branches and loops are shown"
            self._book.gap(CaptureGap(f"the body of {name} ({self._compile.id})", why))
        self._write(layers, kind)
        self.put_last(kind)

    def put_last(self, kind: str) -> None:
        """Writes the graph that was read last as a stage."""
        self._book.put_stage(self._compile.id, kind, self._last.text, data=self._last.data)
        for file in files_of(self._held[-1]):
            self._book.keep_source(file)

    def put_pass(self, passed: str, number: int, layers: list[Layer]) -> None:
        """Writes the graph after a pass as a version of the transformed model, if the pass changed it."""
        before = self._last
        self._write(layers, passed)
        if not self._last.is_like(before):
            put_version(self._book, self._compile.id, stages.TRANSFORMED, passed, number, before, self._last)

    def _write(self, layers: list[Layer], made_by: str) -> None:
        operations = self._reader.read(layers)
        self._held.append(operations)
        number = self._capture.nodes.number(id(operations))
        text, data = written_graph("Model", number, operations, self._above, made_by)
        shapes = {one.name: f"{one.op} {one.target}({', '.join(one.written)})" for one in operations}
        self._above, self._last = number, WrittenGraph(text, data, shapes)


def _operations_of(module: Any, capture: OpenVinoCapture) -> Iterator[Operation]:
    for node in module.graph.nodes:
        frames = capture.nodes.frames(node.meta.get("stack_trace") or "")
        inputs = tuple(one.name for one in node.all_input_nodes)
        op = "call_function" if node.op.startswith("call_") else node.op
        stack = list((node.meta.get("nn_module_stack") or {}).values())
        inside = (str(stack[-1][0]), capture.nodes.class_name(stack[-1][1])) if stack else None
        yield Operation(node.name, op, str(node.target), inputs, inputs, frames=frames, module=inside)
