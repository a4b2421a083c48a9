"""Steps over the user's lines: no call is entered, and frames of libraries are passed."""

from __future__ import annotations

import sysconfig
from types import SimpleNamespace
from typing import Any

import pytest
from irscope.protocol import Origin
from irscope_server.dap.base.sections import SourceSection
from irscope_server.dap.engine import source_steps

MINE = "/home/me/model.py"
LIBRARY = f"{sysconfig.get_paths()['purelib']}/lib/layers.py"


def source(*depths: int | None, library: tuple[int, ...] = ()) -> Any:
    """Spots with these depths, the first one the ``def``."""
    spots = [SimpleNamespace(file=LIBRARY if spot in library else MINE) for spot in range(len(depths))]
    return SimpleNamespace(spots=spots, depth=lambda spot: depths[spot])


def walk(section: Any, just_my_code: bool = True) -> list[int]:
    """The spots that steps over lead to, from the first one."""
    found = [0]
    while (following := source_steps.over(section, found[-1], just_my_code)) is not None:
        found.append(following)
    return found


@pytest.mark.parametrize(
    ("depths", "library", "wanted"),
    [
        ((1, 1, 1), (), [0, 1, 2]),
        ((1, 1, 2, 3, 2, 1), (), [0, 1, 5]),  # the call between two lines is not entered
        ((1, 3, 2, 3, 2), (), [0, 2, 4]),  # nothing but calls: the outermost lines that there are
        ((1, 1, 2, 3), (), [0, 1, 2, 3]),  # the last lines only call
        ((1, None, None), (), [0, 1, 2]),  # runs without stacks
        ((1, 1, 1, 1), (2,), [0, 1, 3]),
        ((1, 2, 3, 2), (2,), [0, 1, 3]),
    ],
)
def test_steps_over_lines(depths: tuple[int | None, ...], library: tuple[int, ...], wanted: list[int]) -> None:
    section = source(*depths, library=library)
    assert walk(section) == wanted
    back = [wanted[-1]]
    while (before := source_steps.back(section, back[-1], True)) is not None:
        back.append(before)
    assert back == wanted[::-1], "each step can be taken back"


def test_libraries_are_stepped_through_on_demand() -> None:
    section = source(1, 1, 1, 1, library=(2,))
    assert walk(section, just_my_code=False) == [0, 1, 2, 3]
    assert source_steps.over(section, 2, True) == 3, "who is there already goes on"


def test_a_line_that_no_step_leads_to_can_be_left_backwards() -> None:
    assert source_steps.back(source(1, 1, 2, 3, 2, 1), 3, True) == 2


@pytest.mark.parametrize(("line", "depth"), [(10, 2), (134, 4)])
def test_the_depth_of_a_line_is_not_that_of_what_it_calls(line: int, depth: int) -> None:
    """TorchScript knows frames of `torch.nn.Module` around each call, and the first operation of a line may be a library's."""
    stack = [(LIBRARY, 1778), (MINE, 10), (LIBRARY, 1778), (LIBRARY, 134)]
    facts = {"linear": SimpleNamespace(stack=tuple(SimpleNamespace(file=file, line=at) for file, at in stack))}
    section: Any = object.__new__(SourceSection)
    section.graph = SimpleNamespace(facts=facts, spots=[SimpleNamespace(name="linear")])
    section._traced = [(Origin(MINE if line == 10 else LIBRARY, line), 0)]
    assert section.depth(1) == depth
