"""The links between two stages of one run, with what passes replaced and with what Dynamo walked over."""

from __future__ import annotations

from collections import defaultdict

from irscope.pipelines.registry import role_of, stage_kind
from irscope.protocol import Compile, StageRef
from irscope.provenance import chain
from irscope.provenance.links import Links, guessed, link
from irscope.provenance.replaced import add_replaced
from irscope.provenance.run_stages import RunStages
from irscope.symbolic.trace import Walk
from irscope.vocabulary.stages import Role

_AT_WORK = ("CALL", "BINARY_", "COMPARE_", "UNARY_", "FOR_ITER", "STORE_SUBSCR", "LOAD_ATTR", "CONTAINS_OP")
"""Instructions that can make a node."""


class StageLinks:
    """The links between the stages of one run."""

    def __init__(self, stages: RunStages) -> None:
        self._stages = stages

    def between(self, above: str, below: str) -> Links:
        """The names in a stage above from which everything in another stage came."""
        a, b = self._stages.by_id[above], self._stages.by_id[below]
        if role_of(a.name) is Role.SOURCE:
            return self._from_bytecode(a, b)
        if chain.is_below_kernel(b) and chain.kernel_of(a) != chain.kernel_of(b) and role_of(a.name) is not Role.CODE:
            return {}
        compile = self._stages.compile_of[below]
        kernels = [kernel for kernel in self._stages.report.kernels if kernel.compile == compile.id]
        links = link(a, self._stages.items(above), b, self._stages.items(below), kernels)
        if stage_kind(a.name).is_graph and stage_kind(b.name).is_graph:
            passes = self._stages.passes_over(compile, b)
            mine = [(version, data) for version, data in passes if chain.is_descendant(version, a)]
            own = [(data, self._stages.new_facts(version, data)) for version, data in mine]
            parents = self._stages.items(above)
            unsure = guessed(parents, self._stages.items(below), links) if own else ()
            add_replaced(links, parents, own, unsure)
        return links

    def _from_bytecode(self, bytecode: StageRef, graph: StageRef) -> Links:
        """The instruction of the compiled function that was at work when a node was made: from the symbolic trace
        where there is one, else those of its line that call or compute."""
        if chain.rank(graph) != 1:
            return {}
        compile = self._stages.compile_of[bytecode.id]
        exact = self._walked(compile)
        instructions: dict[int, list[str]] = defaultdict(list)
        for item in self._stages.items(bytecode.id).items:
            if item.frames and item.target.startswith(_AT_WORK):
                instructions[item.frames[0].line].append(item.element.name)
        up: Links = {}
        for item in self._stages.items(graph.id).items:
            if (offset := exact.get(item.element.name)) in self._stages.items(bytecode.id).by_name:
                up[item.element.name] = (str(offset),)
            elif mine := [frame.line for frame in item.frames if frame.file == compile.file]:
                up[item.element.name] = tuple(instructions.get(mine[-1], ()))
        return up

    def _walked(self, compile: Compile) -> dict[str, str]:
        """Node of Dynamo's graph → offset of the instruction of the compiled function that led to it."""
        stage = next((stage for stage in compile.stages if role_of(stage.name) is Role.TRACE), None)
        if stage is None:
            return {}
        try:
            walk = Walk(self._stages.store.stage_data(self._stages.report.run, stage.id))
        except ValueError:
            return {}
        found: dict[str, str] = {}
        for step in walk:
            if step.nodes:
                top = step
                while top.caller is not None:
                    top = walk.step(top.caller)
                found.update(dict.fromkeys(step.nodes, str(top.offset)))
        return found
