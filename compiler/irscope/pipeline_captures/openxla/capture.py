"""What is captured of OpenXLA: an exported program by torchax and JAX down to LLVM IR."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from irscope.capture.programs import NotLoweredError, Program
from irscope.capture.run_book import RunBook
from irscope.internals.exporting import dynamic_dimensions, flatten, unflatten
from irscope.pipeline_captures.export.capture import ExportCapture
from irscope.pipeline_captures.export.in_place import InPlace, returned_view, unfit
from irscope.pipeline_captures.export.places import user_lines
from irscope.pipeline_captures.export.programs import decomposed
from irscope.pipeline_captures.export.unsupported import Unsupported
from irscope.pipeline_captures.openxla.dump import Dump, dump_options
from irscope.pipeline_captures.openxla.in_place import Executable, is_plain
from irscope.pipeline_captures.openxla.lowering import Input, Torchax, UnsupportedOperatorError, inputs_of
from irscope.pipeline_captures.openxla.shown import Shown, above_of
from irscope.pipeline_captures.openxla.training import TrainingInPlace, TrainingStep, gradients_of
from irscope.pipelines.openxla import stages
from irscope.protocol import Compile, Finding, Origin
from irscope.system.commands import temporary_folder
from irscope.usercode.source import range_of_line

_HINT = "Write it with other operators, or move it out of the program."


class OpenXlaCapture(ExportCapture):
    """Exports each program and compiles it with XLA; the executable runs in its place where that is the same."""

    def __init__(self, book: RunBook) -> None:
        super().__init__(book)
        self._torchax: Torchax | None = None

    def lower(self, program: Program, args: tuple[Any, ...], kwargs: dict[str, Any], compile: Compile) -> Program:
        """Compiles a program and puts its stages; see `ProgramCapture.lower`."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._torchax = self._torchax or Torchax()
            return self._lower(self._torchax, program, args, kwargs, compile)

    def _lower(
        self, jax: Torchax, program: Program, args: tuple[Any, ...], kwargs: dict[str, Any], compile: Compile
    ) -> Program:
        given, named = self._with_static_sizes(args, kwargs, compile)
        exported = self.export(program, given, named, compile)
        made = exported.program
        core = self.decompose(made, compile)
        if core is None:
            return program
        inputs = inputs_of(core, given, named)
        reason = unfit(core, exported.printed) or _unfit_for_xla(jax, core.graph_module.graph, inputs)
        self.put_facts(made, reason, compile)
        try:
            forward, backward = self._compile(jax, core, inputs, compile)
        except UnsupportedOperatorError as error:
            self._find_unsupported(error.node, str(error), compile)
            raise NotLoweredError from error
        if reason:
            return program
        if backward is None:
            return InPlace(program, Executable(jax, forward, inputs, made), made, args, kwargs)
        step = TrainingStep(jax, program, forward, backward, inputs, made)
        return TrainingInPlace(program, step, made, args, kwargs)

    def decomposition(self, exported: Any) -> Any:
        """Into core ATen, and of what torchax cannot compute then into what it can."""
        assert self._torchax is not None
        core, table = decomposed(exported), self._torchax.decompositions
        is_left = any(node.target in table for node in core.graph.nodes)  # it takes as long as the first decomposition
        return core.run_decompositions(table) if is_left else core

    def _compile(self, jax: Torchax, core: Any, inputs: list[Input], compile: Compile) -> Any:
        module = core.graph_module
        if missing := jax.unsupported(module.graph):
            for node in missing:
                self._find_unsupported(node, "torchax does not have it", compile)
            raise NotLoweredError
        function = jax.function(module, inputs, self._place_of, compile.function)
        wanted = gradients_of(inputs)
        above = above_of(module, self.nodes)
        shown = Shown(self.book, compile, self.nodes, above)
        if not any(wanted):
            return self._executable(jax, function, jax.shapes(inputs), shown)[0], None
        first, second = jax.training(function, wanted)
        forward, (given, saved, _) = self._executable(jax, first, jax.shapes(inputs), shown)
        shown = Shown(self.book, compile, self.nodes, above, backward=True)
        return forward, self._executable(jax, second, [saved, given], shown)[0]

    def _executable(self, jax: Torchax, function: Any, shapes: list[Any], shown: Shown) -> tuple[Any, Any]:
        """A function of JAX compiled by XLA, and the shapes of what it gives; puts its stages."""
        with jax.exact(), temporary_folder() as folder:
            traced = jax.jax.jit(function).trace(*shapes)
            above = shown.put_jaxpr(traced.jaxpr.pretty_print(name_stack=True, use_color=False))
            lowered = traced.lower()
            shown.put_stablehlo(lowered.as_text(debug_info=True), above)
            compiled = lowered.compile(compiler_options=dump_options(folder))
            shown.put_dump(Dump(Path(folder)))
            return compiled, traced.out_info

    # --- places -------------------------------------------------------------------------------------------------------

    def _place_of(self, node: Any) -> Origin | None:
        """The innermost line of a node that is shown for it."""
        return next(iter(user_lines(self.nodes.frames(node.meta.get("stack_trace") or ""))), None)

    def _find_unsupported(self, node: Any, why: str, compile: Compile) -> None:
        message = f"OpenXLA cannot compile {node.target}: {why.rstrip('.')}."
        what = Unsupported(
            "no-torchax-operator", message, "The program is not compiled; it runs as plain Python.", (_HINT,)
        )
        self.find_unsupported(what, node, compile)

    def _with_static_sizes(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], compile: Compile
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments without marks of dynamic dimensions, which XLA does not have; a finding says so."""
        leaves, nesting = flatten((args, kwargs))
        static = []
        for number, leaf in enumerate(leaves):
            if hasattr(leaf, "stride") and (dimensions := dynamic_dimensions(leaf)):
                leaves[number] = leaf.detach().requires_grad_(leaf.requires_grad)
                sizes = ", ".join(f"{one} (size {leaf.shape[one]})" for one in sorted(dimensions))
                static.append(f"dimension {sizes} of input {number}")
        if static:
            kind = stages.STATIC_SIZE
            verb = "is" if len(static) == 1 else "are"
            self.book.findings.add(
                Finding(
                    kind=kind.id, code="static-size", severity=kind.severity,
                    message=f"XLA compiles for one size of each dimension: {', '.join(static)} {verb} not dynamic.",
                    explanation="Calls with other sizes run as plain Python.", hints=(), link=None, file=compile.file,
                    range=range_of_line(compile.file, compile.line), count=1, compiles=(compile.id,),
                )
            )  # fmt: skip
        given, named = unflatten(leaves, nesting)
        return given, named


def _unfit_for_xla(jax: Torchax, graph: Any, inputs: list[Input]) -> str:
    """Why the executable can never take the place of the program; empty if it can."""
    if jax.draws_random_numbers(graph):
        return "it draws random numbers, and JAX draws other ones"
    if returned_view(graph):
        return "it returns an input or a view of one"
    return "" if is_plain(inputs) else "XLA cannot take its tensors as they are"
