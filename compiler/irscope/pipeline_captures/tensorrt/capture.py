"""What is captured of Torch-TensorRT: the program as it lowers it, and how its partitioner divides it.  No engine is built."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from irscope.capture.nodes import target_name
from irscope.capture.operation_graphs import ITEM, Operation, Tensor, files_of, written_graph
from irscope.capture.programs import NotLoweredError, Program
from irscope.capture.versions import WrittenGraph, put_version
from irscope.findings.kinds import fallback
from irscope.internals.tensorrt import TorchTensorRt
from irscope.pipeline_captures.export.capture import ExportCapture
from irscope.pipeline_captures.export.programs import drop_guards
from irscope.pipeline_captures.export.unsupported import Unsupported, finding_of
from irscope.pipeline_captures.tensorrt import parts
from irscope.pipeline_captures.tensorrt.parts import DryRun, Part
from irscope.pipelines.export import stages as export_stages
from irscope.pipelines.tensorrt import stages
from irscope.protocol import CaptureGap, Compile, Finding, Severity

_NOT_BUILT = "this is a dry run, and no TensorRT engine is built"
_ENGINE = "_run_on_acc"
"""What the partitioner calls a submodule for TensorRT, before its number."""


class TensorRtCapture(ExportCapture):
    """Lowers a copy of each program as Torch-TensorRT does, and partitions it; the script's own program runs."""

    def lower(self, program: Program, args: tuple[Any, ...], kwargs: dict[str, Any], compile: Compile) -> Program:
        """Puts the stages of a program; see `ProgramCapture.lower`."""
        exported = self.export(program, args, kwargs, compile)
        self.put_facts(exported.program, _NOT_BUILT, compile)
        try:
            package = TorchTensorRt()
        except ImportError as error:
            self.book.gap(CaptureGap(f"the dry run of {compile.id}", str(error)))
            raise NotLoweredError from error
        module = package.decomposed(exported.program)
        drop_guards(module)
        self.put_graph(compile, export_stages.DECOMPOSED_PROGRAM.name, module)
        versions = _Versions(self, module, compile)
        module = package.lowered(module, versions.put)
        self.put_graph(compile, stages.LOWERED.name, module)
        run = self._divided(package, module)
        self._put_partitioned(run, module, compile)
        self.book.put_stage(compile.id, stages.REPORT.name, parts.report_text(run))
        self._find(run, module, compile)
        return program

    def why_as_python(self, program: object) -> str:
        """No program is replaced."""
        told = super().why_as_python(program)
        return told and f"{told.partition(' runs as Python')[0]} runs as Python: {_NOT_BUILT}"

    def _divided(self, package: TorchTensorRt, module: Any) -> DryRun:
        calls = [node for node in module.graph.nodes if node.op.startswith("call_")]
        targets = {node.name: target_name(node.target) for node in calls}
        refusals = package.refusals(module)
        blocks = parts_of(package.partitioned(module, 1), targets)
        found = parts_of(package.partitioned(module, package.smallest), targets)
        stays = parts.stays_of(found, blocks, refusals, package.smallest)
        return DryRun(package.version, package.has_gpu, package.smallest, targets, found, stays)

    def _put_partitioned(self, run: DryRun, module: Any, compile: Compile) -> None:
        """Puts the nodes of the lowered program in the order of the parts, each with where it runs and why."""
        order = {name: at for at, part in enumerate(run.parts) for name in part.nodes}
        notes = parts.notes_of(run)
        operations = [dataclasses.replace(one, note=notes.get(one.name, "")) for one in self._operations(module)]
        place = {"placeholder": -2, "get_attr": -1, "output": len(run.parts)}
        operations.sort(key=lambda one: place.get(one.op, order.get(one.name, 0)))
        above = self.nodes.number(id(module.graph))
        text, data = written_graph("Partitioned", self.nodes.new_number(), operations, above, stages.PARTITIONED.title)
        self.book.put_stage(compile.id, stages.PARTITIONED.name, text, data=data)
        for file in files_of(operations):
            self.book.keep_source(file)

    def _operations(self, module: Any) -> Iterator[Operation]:
        for node in module.graph.nodes:
            frames = self.nodes.frames(node.meta.get("stack_trace") or "")
            stack = list((node.meta.get("nn_module_stack") or {}).values())
            inside = (str(stack[-1][0]), self.nodes.class_name(stack[-1][1])) if stack else None
            op = "call_function" if node.op.startswith("call_") else node.op
            inputs = tuple(one.name for one in node.all_input_nodes)
            written = (*map(_printed, node.args), *(f"{key}={_printed(one)}" for key, one in node.kwargs.items()))
            value = _tensor(node.meta.get("val"))
            target = target_name(node.target)
            yield Operation(node.name, op, target, inputs, written, value, frames, inside, (node.name,))

    def _find(self, run: DryRun, module: Any, compile: Compile) -> None:
        """Puts a finding for each line with operations that stay with PyTorch; several reasons of one kind are one."""
        found: dict[tuple[Any, ...], tuple[Finding, dict[str, None]]] = {}
        shape = parts.shape_of(run)
        for node in module.graph.nodes:
            stay = run.stays.get(node.name)
            if stay is None or not stay.is_told or run.targets[node.name] == ITEM:
                continue
            what = Unsupported(stay.code, parts.message_of(stay, run.targets[node.name]), shape, parts.hints_of(stay))
            one = finding_of(what, node, compile, self.nodes)
            found.setdefault(one.cause, (one, {}))[1][one.message] = None
        for one, messages in found.values():
            severity = fallback.KIND.severity if one.code == parts.SMALL else Severity.WARNING
            kind, message = fallback.KIND.id, "\n".join(messages)
            self.book.findings.add(dataclasses.replace(one, kind=kind, message=message, severity=severity))


def parts_of(partitioned: Any, known: dict[str, str]) -> list[Part]:
    """The parts of a module that the partitioner cut, in the order in which they run.

    Args:
        known: The names of the operations that were there before; what the partitioner adds between its parts is left
            out.
    """
    inside: dict[str, tuple[str, ...]] = {}
    for name, child in partitioned.named_children():
        if hasattr(child, "graph"):
            calls = [one for one in child.graph.nodes if one.op.startswith("call_")]  # its inputs are named alike
            inside[name] = tuple(one.name for one in calls if one.name in known)
    moved = {one for names in inside.values() for one in names}
    found: list[Part] = []
    for node in partitioned.graph.nodes:
        name = str(node.target)
        if node.op == "call_module" and name in inside:
            found.append(Part(name, _ENGINE in name, inside[name]))
        elif node.name in known and node.name not in moved:  # what it adds may have the name of what it moved
            before = found.pop() if found and not found[-1].name else Part("", False, ())
            found.append(Part("", False, (*before.nodes, node.name)))
    return found


def _printed(argument: Any) -> str:
    if isinstance(argument, list | tuple):
        return f"[{', '.join(map(_printed, argument))}]"
    return (
        str(getattr(argument, "name", None) or repr(argument))
        if hasattr(argument, "all_input_nodes")
        else repr(argument)
    )


def _tensor(value: Any) -> Tensor | None:
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is None or dtype is None:
        return None
    return Tensor(str(dtype).removeprefix("torch."), tuple(one if type(one) is int else str(one) for one in shape))


class _Versions:
    """The program after each lowering pass that changed it."""

    def __init__(self, capture: ExportCapture, module: Any, compile: Compile) -> None:
        self._capture, self._compile, self._number = capture, compile, 0
        self._last = self._written(module)

    def put(self, passed: str, module: Any) -> None:
        """Puts the module as a version if the pass changed it."""
        before, self._last = self._last, self._written(module)
        if not self._last.is_like(before):
            put_version(self._capture.book, self._compile.id, stages.LOWERED, passed, self._number, before, self._last)
            self._number += 1

    def _written(self, module: Any) -> WrittenGraph:
        shapes = {one.name: f"{one.op} {one.target} {one.args} {one.kwargs}" for one in module.graph.nodes}
        text = module.print_readable(print_output=False)
        return WrittenGraph(text, self._capture.nodes.describe(module), shapes)
