"""A whole pipeline in one file: an interpreter of FX graphs, with a graph stage, a text stage and a finding."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

from irscope.capture.programs import Program, ProgramCapture
from irscope.pipelines.base import Pipeline
from irscope.protocol import Compile, Finding, Lane, Position, Range, Severity
from irscope.vocabulary.findings import FindingKind
from irscope.vocabulary.stages import Role, StageKind

TRACED = StageKind("fx-traced", "Traced by FX", "python", Role.GRAPH, 1, is_captured=True)
STEPS = StageKind("fx-steps", "Steps of the interpreter", "plaintext", Role.TEXT, 2)
SLOW_STEP = FindingKind(
    id="interpreted-step",
    label="Interpreted step",
    short=("step", "steps"),
    lanes=(Lane.FAST, Lane.DEEP),
    severity=Severity.INFORMATION,
)
PIPELINE = Pipeline(
    name="fx-interpreter",
    title="An interpreter of FX graphs",
    stages=(TRACED, STEPS),
    findings=(SLOW_STEP,),
    capture=f"{__name__}:FxCapture",
)


class FxCapture(ProgramCapture):
    """Traces a program with FX, and interprets the graph."""

    def lower(self, program: Program, args: tuple[Any, ...], kwargs: dict[str, Any], compile: Compile) -> Program:
        from torch import fx

        class Tracer(fx.Tracer):
            def create_node(self, *args: Any, **kwargs: Any) -> fx.Node:
                node = super().create_node(*args, **kwargs)
                frames = [frame for frame in traceback.extract_stack() if frame.filename == compile.file]
                node.stack_trace = "".join(traceback.StackSummary.from_list(frames).format())
                return node

        tracer = Tracer()
        graph = tracer.trace(program)
        module = fx.GraphModule(tracer.root, graph)
        self.book.put_stage(compile.id, TRACED.name, module.print_readable(print_output=False))
        calls = [node for node in module.graph.nodes if node.op.startswith("call_")]
        rows = [f"{number}: run {node.name}" for number, node in enumerate(calls, 1)]
        # Each line of the text is of a node of the stage above.
        lines = [(number, node.name) for number, node in enumerate(calls, 1)]
        self.book.put_stage(compile.id, STEPS.name, "\n".join(rows) + "\n", data={"lines": lines})
        self._find(compile)
        run: Callable[..., Any] = fx.Interpreter(module).run
        return run

    def _find(self, compile: Compile) -> None:
        here = Range(Position(compile.line, 0), Position(compile.line, 1))
        self.book.publish(
            Finding(
                SLOW_STEP.id, "fx-interpreted", SLOW_STEP.severity, "This function is interpreted node by node.",
                "No code is generated for it.", (), None, compile.file, here, 1, (compile.id,),
            )
        )  # fmt: skip
