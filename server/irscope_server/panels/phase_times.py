"""How long the making of each stage took, from the phases of its compile."""

from __future__ import annotations

from irscope.ir import phases
from irscope.pipelines.registry import role_of, stage_kinds
from irscope.protocol import Compile
from irscope.store.store import Store
from irscope.vocabulary.stages import Role

_BACKWARD = ("entire_backward_compile", "bw_compiler")


class StageTimes:
    """Seconds by stage; none are known if the compile has no phases."""

    def __init__(self, store: Store, run: str, compile: Compile) -> None:
        self._seconds: dict[tuple[str, bool], float] = {}
        stage = next((stage for stage in compile.stages if role_of(stage.name) is Role.PHASES), None)
        if stage is None:
            return
        try:
            found = phases.from_data(store.stage_data(run, stage.id))
        except ValueError:
            return
        backward: list[bool] = []
        inside: list[set[str]] = []
        """The stages that each phase helped to make."""
        for phase in found:
            known = 0 <= phase.parent < len(backward)
            is_backward = (known and backward[phase.parent]) or any(name in phase.name for name in _BACKWARD)
            around = inside[phase.parent] if known else set()
            made = {name for name, kind in stage_kinds().items() if phase.name in kind.phases}
            for name in made - around:
                key = (name, is_backward)
                self._seconds[key] = self._seconds.get(key, 0.0) + phase.seconds
            backward.append(is_backward)
            inside.append(around | made)

    def of(self, name: str, track: str) -> float | None:
        """Seconds that the making of a stage took; None if they are not known."""
        seconds = self._seconds.get((name, track == "backward"))
        return None if seconds is None else round(seconds, 6)
