"""What is captured of quantization: the steps that make the integer program, what they left out, and all of Inductor."""

from __future__ import annotations

import functools
import inspect
import os
import sys
import types
import warnings
from collections.abc import Callable
from dataclasses import field
from typing import Any

from irscope.capture.nodes import NodeWriter
from irscope.capture.programs import as_module
from irscope.capture.run_book import RunBook
from irscope.events.trace import Record
from irscope.findings.kinds import cache_bypass
from irscope.findings.places import function_range
from irscope.internals import compile_calls
from irscope.internals.exporting import flatten, frames_hook, unflatten
from irscope.internals.hooks import Hook
from irscope.internals.inductor_calls import inductor_set
from irscope.pipeline_captures.inductor.capture import InductorCapture
from irscope.pipeline_captures.torchao import pt2e
from irscope.pipeline_captures.torchao.by_script import Step, StepsOfScript, is_quantized, quantized_graph, step_of
from irscope.pipeline_captures.torchao.report import (
    X86,
    Operation,
    Stack,
    WithWeight,
    fused_text,
    left_by_quantize,
    modules_text,
    modules_with_weights,
    operations_of,
    report_text,
)
from irscope.pipeline_captures.torchscript.making import modules_of
from irscope.pipelines.dynamo_stages import DYNAMO_GRAPH
from irscope.pipelines.inductor.stages import OUTPUT_CODE
from irscope.pipelines.torchao import stages
from irscope.protocol import CaptureGap, Finding, Range
from irscope.usercode.source import range_of_line
from irscope.usercode.user_files import is_user_file
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.stages import StageKind

FREEZING = {"freezing": True}
"""Parameters are constants, which Inductor's fusions of integer operators need.  As an option of one ``torch.compile``
it is not on while the graph is traced, and these fail."""


@dataclass
class _Quantized:
    """A program that is being compiled, with what is to be put under its compile."""

    report: str = ""
    is_ours: bool = False
    """Whether irscope has quantized it; else the script has."""
    steps: list[Step] = field(default_factory=list)
    left: list[tuple[Operation, Stack]] = field(default_factory=list)
    """What is not quantized and worth a finding, with the lines of the nodes."""
    modules: list[WithWeight] = field(default_factory=list)
    """The modules of a model that the script has changed by ``quantize_``."""
    function: types.CodeType | None = None
    compile: str = ""
    report_id: str = ""


class TorchaoCapture(InductorCapture):
    """In the deep lane each program is quantized and compiled beside the script, which goes on with its own."""

    def __init__(self, book: RunBook) -> None:
        super().__init__(book)
        self._nodes = NodeWriter() if self._deep_lane is None else self._deep_lane.nodes
        self._now: _Quantized | None = None
        self._is_busy = False
        self._own = StepsOfScript(book, self._nodes, lambda: self._is_busy)

    def hooks(self) -> list[Hook]:
        """What is patched in PyTorch: besides Inductor's hooks, in the deep lane, torch.compile."""
        if not self.book.is_deep:
            return super().hooks()
        return [*super().hooks(), compile_calls.compiling_hook(self._take), frames_hook(), self._own.hook()]

    # --- the script's programs ----------------------------------------------------------------------------------------

    def _take(self, program: Any, compile: Callable[..., Any], options: dict[str, Any]) -> Any:
        """What the script calls: at the first call it is known whether the script has quantized the program itself."""
        chosen: list[Callable[..., Any]] = []

        @functools.wraps(program)
        def called(*args: Any, **kwargs: Any) -> Any:
            if self._is_busy:  # it is a part of the program that is being quantized
                return program(*args, **kwargs)
            if chosen:
                return chosen[0](*args, **kwargs)
            modules = modules_of(program)
            if is_quantized(modules):
                chosen.append(compile(program, **options))
                return self._first_call(self._of_the_script(modules), chosen[0], args, kwargs)
            chosen.append(program)
            made = self._try(program, compile, args, kwargs) if self.book.is_open else None
            result = program(*args, **kwargs)
            if made is not None:
                self.book.guarded(self._compare)(*made, result)
            return result

        return as_module(program, called) if isinstance(program, sys.modules["torch"].nn.Module) else called

    def _first_call(self, now: _Quantized, compiled: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Calls what is compiled at this call."""
        self._now = now
        try:
            return compiled(*args, **kwargs)
        finally:
            self._now = None

    def _try(self, program: Any, compile: Callable[..., Any], args: Any, kwargs: Any) -> tuple[_Quantized, Any] | None:
        """Quantizes and compiles a program on copies of its arguments.  Returns what is known about it and its result;
        None if something failed, which is a gap."""
        self._is_busy = True
        try:
            return self._quantize(program, compile, *_copied((args, kwargs)))
        except Exception as error:  # noqa: BLE001  the script runs on without it
            first = next((line for line in str(error).split("\n") if line.strip()), "no message")
            why = f"{type(error).__name__}: {first}{_raised_in_torchao(error)}"
            self.book.gap(CaptureGap(f"the quantized {_name_of(program)}", why))
            return None
        finally:
            self._is_busy = False

    def _quantize(self, program: Any, compile: Callable[..., Any], args: Any, kwargs: Any) -> tuple[_Quantized, Any]:
        torch: Any = sys.modules["torch"]
        if getattr(program, "training", False):
            raise ValueError("it is in training mode, and quantization after training needs model.eval()")
        now = _Quantized(is_ours=True, function=_code_of(program))
        with self.book.quietly(), torch.random.fork_rng():
            graph = pt2e.quantized(program, args, kwargs, functools.partial(self._step, now))
            self._report(now, graph)
        with warnings.catch_warnings(), torch.no_grad(), torch.random.fork_rng(), inductor_set({}, FREEZING):
            warnings.simplefilter("ignore")
            return now, self._first_call(now, compile(graph), args, kwargs)

    def _compare(self, now: _Quantized, got: Any, expected: Any) -> None:
        text = f"{now.report}\n{_difference(got, expected)}\n"
        self.book.write_stage(now.compile, stages.REPORT.name, now.report_id, text)

    def _step(self, now: _Quantized, name: str, graph: Any) -> None:
        now.steps.append(step_of(name, graph, self._nodes))

    def _of_the_script(self, modules: list[Any]) -> _Quantized:
        """What is known about a program that the script has quantized."""
        now = _Quantized()
        self.book.caught(lambda: self._look(now, modules))
        return now

    def _look(self, now: _Quantized, modules: list[Any]) -> None:
        graph = quantized_graph(modules)
        if graph is None:
            now.modules = modules_with_weights(modules)
            now.report = modules_text(now.modules)
            return
        steps = self._own.of(graph)
        now.steps, now.function = list(steps.made), steps.function
        self._report(now, graph, steps.quantizer)

    def _report(self, now: _Quantized, graph: Any, quantizer: str = X86) -> None:
        """Notes what of a converted graph is quantized."""
        operations = operations_of(graph, quantizer)
        now.report = report_text(operations)
        traces = {node.name: str(node.meta.get("stack_trace") or "") for node in graph.graph.nodes}
        for one in operations:
            if one.code and one.is_weighty:
                now.left.append((one, [(file, line) for file, line, _ in self._nodes.frames(traces[one.node])]))

    # --- the trace ----------------------------------------------------------------------------------------------------

    def shown_as(self, code: types.CodeType) -> types.CodeType:
        """The user's function, of the graph that was made of it."""
        now = self._now
        is_ours = now is not None and now.function is not None and code.co_filename.startswith("<eval_with_key>")
        return now.function if is_ours and now is not None and now.function is not None else code

    def is_about_the_script(self, record: Record) -> bool:
        """Whether a record may be a finding: no cache keeps a frozen graph, and the script did not ask for it."""
        return self._now is None or not self._now.is_ours or record.event not in cache_bypass.EVENTS

    def stage_written(self, record: Record, kind: StageKind, id: str, text: str, backward: bool, data: object) -> None:
        """A stage is in the store: that of Dynamo's graph is followed by those of the quantization above it."""
        super().stage_written(record, kind, id, text, backward, data)
        now, compile = self._now, record.compile or ""
        if kind is OUTPUT_CODE:
            summary = fused_text(text, is_frozen=now is not None and now.is_ours)
            self.book.put_stage(compile, stages.FUSED.name, summary, record.attempt, backward=backward)
        if kind is not DYNAMO_GRAPH or now is None:
            return
        now.compile = compile
        for step in now.steps:
            self.book.put_stage(compile, step.kind.name, step.text, record.attempt, step.data)
            for file in dict.fromkeys(file for file, _, _ in step.data["frames"]):
                self.book.keep_source(file)
        now.report_id = self.book.put_stage(compile, stages.REPORT.name, now.report, record.attempt)
        self._find(compile, [*now.left, *(left_by_quantize(now.modules, data) if now.modules and data else ())])

    def _find(self, compile_id: str, left: list[tuple[Operation, Stack]]) -> None:
        """One finding for each of the user's lines and each reason, with all operations."""
        compile = self.book.compiles.get(compile_id)
        if compile is None:
            return
        by_place: dict[tuple[str, Range, str], list[Operation]] = {}
        for operation, stack in left:
            mine = [(file, line) for file, line in stack if is_user_file(file)]
            file, where = compile.file, function_range(compile)
            if mine:
                file, where = mine[-1][0], range_of_line(*mine[-1])
            by_place.setdefault((file, where, operation.code), []).append(operation)
        for (file, where, _), operations in by_place.items():
            self.book.findings.add(_finding(operations, compile_id, file, where))


def _finding(operations: list[Operation], compile: str, file: str, where: Range) -> Finding:
    names = list(dict.fromkeys(f"`{one.operator}`" for one in operations))
    return Finding(
        kind=stages.NOT_QUANTIZED.id,
        code=operations[0].code,
        severity=stages.NOT_QUANTIZED.severity,
        message=f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} not quantized: {operations[0].why}.",
        explanation="It computes with floating-point numbers. The stage *What is quantized* lists all operations.",
        hints=(),
        link=None,
        file=file,
        range=where,
        count=len(operations),
        compiles=(compile,),
    )


def _code_of(program: Any) -> types.CodeType | None:
    code = getattr(inspect.unwrap(getattr(program, "forward", program)), "__code__", None)
    return code if isinstance(code, types.CodeType) else None


def _name_of(program: Any) -> str:
    return str(getattr(program, "__name__", None) or type(program).__name__)


def _raised_in_torchao(error: Exception) -> str:
    """Where torchao raised an error: its quantizers fail at some graphs, and the message alone says little."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    file = trace.tb_frame.f_code.co_filename if trace is not None else ""
    if trace is None or f"{os.sep}torchao{os.sep}quantization{os.sep}" not in file:
        return ""
    return f"; torchao raises it, at line {trace.tb_lineno} of {os.path.basename(file)}"


def _copied(arguments: Any) -> Any:
    torch: Any = sys.modules["torch"]
    leaves, nesting = flatten(arguments)
    copies = [one.detach().clone() if isinstance(one, torch.Tensor) else one for one in leaves]
    return unflatten(copies, nesting)


def _difference(got: Any, expected: Any) -> str:
    """How far the quantized program is from the script's own, in the first result that is a tensor of numbers."""
    torch: Any = sys.modules["torch"]
    for mine, theirs in zip(flatten(got)[0], flatten(expected)[0], strict=False):
        if isinstance(mine, torch.Tensor) and mine.shape == theirs.shape and mine.is_floating_point():
            far, largest = float((mine - theirs).abs().max()), float(theirs.abs().max())
            return f"Largest difference to the script's own program: {far:.3g}; its largest value is {largest:.3g}."
    return "No result can be compared with that of the script's own program."
