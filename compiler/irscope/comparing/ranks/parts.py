"""The parts of a compile: each forward, backward and inference graph with what it became.

A compile has several of each where DDP's buckets cut it, and the backward graphs are lowered in the order of the backward.
So stages are matched by the number that Inductor's output code has (``# AOT ID: ['2_backward']``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from irscope.pipelines.registry import role_of, stage_kind
from irscope.protocol import StageRef
from irscope.vocabulary.patterns import pattern
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.stages import Part as Side
from irscope.vocabulary.stages import Role

_AOT_ID = pattern(r"# AOT ID: \['(\d+)_(\w+)'\]")
_BACKWARD = "backward"
_FORWARDS = (Side.INFERENCE, Side.FORWARD)


@dataclass(frozen=True)
class Part:
    """One program of a compile.

    Args:
        number: Number of its forward in the compile, from 0; a backward has that of its forward.
        graphs: From the one that autograd traced down, versions after passes included; the last one is the lowest.
        code: The output code, or None.
    """

    number: int
    is_backward: bool
    graphs: tuple[StageRef, ...]
    code: StageRef | None = None


def parts_of(stages: Sequence[StageRef], text: Callable[[str], str]) -> list[Part]:
    """The programs of a compile, forwards first; without any, the graph that was captured.

    Args:
        text: Returns the text of a stage by its ID.
    """
    tops = tops_of(stages)
    traced = {
        False: [stage for stage in tops if stage_kind(stage.name).part in _FORWARDS],
        True: [stage for stage in tops if stage_kind(stage.name).part is Side.BACKWARD],
    }
    codes = [stage for stage in stages if role_of(stage.name) is Role.CODE]
    ids = {stage.id: (int(match[1]), match[2]) for stage in codes if (match := _AOT_ID.search(text(stage.id)[:200]))}
    forwards = sorted(number for number, side in ids.values() if side != _BACKWARD)
    found: list[Part] = []
    for is_backward, tops_of_side in traced.items():
        mine = [stage for stage in codes if (ids.get(stage.id, (0, ""))[1] == _BACKWARD) is is_backward]
        by_number = {_place(ids.get(stage.id), forwards, number): stage for number, stage in enumerate(mine)}
        found += _of_side(stages, tops_of_side, by_number, is_backward)
    return found or [Part(0, False, (stage,)) for stage in tops]


def _of_side(
    stages: Sequence[StageRef], tops: list[StageRef], codes: Mapping[int, StageRef], is_backward: bool
) -> Iterator[Part]:
    """The forwards, or the backwards, by the graphs that were traced and the code by number."""
    for number in range(max(len(tops), *(number + 1 for number in codes), 0)):
        code = codes.get(number)
        top = tops[number : number + 1]
        below = _lowered(stages, code) if code is not None else []
        if top or code is not None:
            yield Part(number, is_backward, (*top, *below), code)


def tops_of(stages: Sequence[StageRef]) -> list[StageRef]:
    """The graphs that autograd traced; if they are missing, those that were captured."""
    graphs = [stage for stage in stages if stage_kind(stage.name).is_graph and not stage.passed]
    traced = [stage for stage in graphs if stage_kind(stage.name).part in (*_FORWARDS, Side.BACKWARD)]
    return traced or [stage for stage in graphs if stage_kind(stage.name).is_captured]


def _place(told: tuple[int, str] | None, forwards: Sequence[int], at: int) -> int:
    """Which of the forwards it is, or belongs to; its own place if that is not told."""
    return forwards.index(told[0]) if told is not None and told[0] in forwards else at


def _lowered(stages: Sequence[StageRef], code: StageRef) -> list[StageRef]:
    """The graph that became this code, after its versions."""
    home, _, last = code.id.rpartition("/")
    suffix = last.removeprefix(code.name)
    for stage in stages:
        if stage_kind(stage.name).is_lowered and stage.id == f"{home}/{stage.name}{suffix}":
            return [*(each for each in stages if each.passed and each.id.rpartition("/")[0] == stage.id), stage]
    return []
