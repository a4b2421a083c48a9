"""How long the making of each stage took, from the phases of its compile."""

from __future__ import annotations

from irscope import phases
from irscope.protocol import Compile
from irscope.store import Store

_PHASES = {
    "dynamo-graph": ("bytecode_tracing",),
    "pre-grad-graph": ("_recursive_pre_grad_passes",),
    "joint-graph": ("aot_trace_joint_graph", "_recursive_joint_graph_passes"),
    "inference-graph": ("aot_trace_joint_graph", "_recursive_joint_graph_passes", "aot_collect_metadata"),
    "post-grad-graph": ("_recursive_post_grad_passes",),
    "ir-pre-fusion": ("GraphLowering.run",),
    "ir-post-fusion": ("Scheduler.__init__",),
    "output-code": ("Scheduler.codegen", "PythonWrapperCodegen.generate"),
    "kernel": ("PyCodeCache.load_by_key_path",),
}
"""PyTorch's names of what makes a stage.  Loading the output code is mostly waiting for its kernels to be compiled."""

_BACKWARD = ("entire_backward_compile", "bw_compiler")


class StageTimes:
    """Seconds by stage; nothing is known where the compile has no phases."""

    def __init__(self, store: Store, run: str, compile: Compile) -> None:
        self._seconds: dict[tuple[str, bool], float] = {}
        stage = next((stage for stage in compile.stages if stage.name == "phases"), None)
        if stage is None:
            return
        try:
            found = phases.from_data(store.stage_data(run, stage.id))
        except ValueError:
            return
        backward: list[bool] = []
        inside: list[set[str]] = []
        """Stages whose making each phase is a part of."""
        for phase in found:
            known = 0 <= phase.parent < len(backward)
            is_backward = (known and backward[phase.parent]) or any(name in phase.name for name in _BACKWARD)
            around = inside[phase.parent] if known else set()
            made = {name for name, names in _PHASES.items() if phase.name in names}
            for name in made - around:
                key = (name, is_backward)
                self._seconds[key] = self._seconds.get(key, 0.0) + phase.seconds
            backward.append(is_backward)
            inside.append(around | made)

    def of(self, name: str, track: str) -> float | None:
        seconds = self._seconds.get((name, track == "backward"))
        return None if seconds is None else round(seconds, 6)
