"""The search for causes: which changes are tried, and what is confirmed.  The runs are stand-ins."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence

from irscope.comparing.versions.differences import Difference
from irscope.comparing.versions.environments import (
    DECOMPOSITION,
    FUNCTION,
    SETTING,
    EnvironmentChange,
    Facts,
    environment_changes,
    old_settings,
)
from irscope.driver.search import Candidate, Flip, Search
from irscope.internals.environment_facts import literal

BREAK = Difference("finding", "new: graph-break GB0059: a break", "net.py", 3)
KERNELS = Difference("kernels", "2 kernels, now 3", "net.py", 7)
NUMBERS = Difference("numbers", "f#0, result: differs: by 0.1")
HOW = "it was tried"


def candidates(number: int) -> list[Candidate]:
    names = [f"c{i}" for i in range(number)]
    return [(EnvironmentChange(SETTING, name, "1", "2"), Flip(settings={name: "1"})) for name in names]


class Machine:
    """Environments in which each difference is there unless all settings of one of its ways are taken back."""

    def __init__(self, ways: dict[Difference, Sequence[set[str]]], fails: frozenset[str] = frozenset()) -> None:
        self.ways, self.fails, self.runs = ways, fails, 0

    def __call__(self, flip: Flip) -> list[Difference] | None:
        self.runs += 1
        if self.fails & set(flip.settings):
            return None
        return [one for one, ways in self.ways.items() if not any(way <= set(flip.settings) for way in ways)]


def searched(machine: Machine, number: int, seconds: float = 60) -> Search:
    search = Search(list(machine.ways), machine, time.monotonic() + seconds, lambda text: None)
    search.candidates(candidates(number), HOW)
    return search


def names(search: Search) -> dict[tuple[str, ...], tuple[Difference, ...]]:
    return {tuple(change.name for change in cause.changes): cause.explains for cause in search.causes}


def test_each_difference_gets_the_change_that_causes_it() -> None:
    for a, b in itertools.product(range(9), repeat=2):
        machine = Machine({BREAK: [{f"c{a}"}], KERNELS: [{f"c{b}"}], NUMBERS: []})
        search = searched(machine, 9)
        expected = {(f"c{a}",): (BREAK, KERNELS)} if a == b else {(f"c{a}",): (BREAK,), (f"c{b}",): (KERNELS,)}
        assert names(search) == expected and search.left == [NUMBERS]


def test_a_cause_among_many_takes_few_runs() -> None:
    machine = Machine({BREAK: [{"c77"}]})
    assert names(searched(machine, 100)) == {("c77",): (BREAK,)}
    assert machine.runs <= 15


def test_changes_that_cause_something_only_together_are_named_together() -> None:
    machine = Machine({BREAK: [{"c0", "c3"}]})
    search = searched(machine, 4)
    assert names(search) == {("c0", "c3"): (BREAK,)} and not search.left


def test_the_search_goes_on_where_the_script_fails_with_some_changes() -> None:
    machine = Machine({BREAK: [{"c1"}], KERNELS: [{"c6"}]}, fails=frozenset({"c5"}))
    assert names(searched(machine, 8)) == {("c1",): (BREAK,), ("c6",): (KERNELS,)}


def test_older_code_that_brings_another_difference_confirms_nothing() -> None:
    other = Difference("compile", "gone: compile of f", "net.py", 1)
    candidate = EnvironmentChange(FUNCTION, "torch.f", "3 lines", "4 lines"), Flip(code={"torch:f": "def f(): pass"})
    for brought, causes in (([other], 0), ([], 1)):
        search = Search([BREAK], lambda flip, brought=brought: brought, time.monotonic() + 60, lambda text: None)  # type: ignore[misc]
        search.candidates([candidate], HOW)
        assert len(search.causes) == causes and search.left == ([BREAK] if brought else [])


def test_without_it_in_both_only_what_is_compiled_shows_a_cause() -> None:
    code = Difference("code", "other code in 1 kernel: cpp_fused_add_0", "net.py", 7)
    without = [
        (EnvironmentChange(DECOMPOSITION, name, "1", "2"), Flip(without=(name,), in_both=True))
        for name in ("aten.add", "aten.gelu")
    ]
    for gone, expected in (([code], {}), ([code, KERNELS], {("aten.gelu",): (code, KERNELS)})):
        left = [one for one in (code, KERNELS) if one not in gone]
        tried = lambda flip, left=left: left if "aten.gelu" in flip.without else [code, KERNELS]  # noqa: E731
        search = Search([code, KERNELS], tried, time.monotonic() + 60, lambda text: None)
        search.candidates(without, HOW)
        assert names(search) == expected


def test_without_time_no_cause_is_confirmed() -> None:
    search = searched(Machine({BREAK: [{"c1"}]}), 8, seconds=-1)
    assert search.is_over and not search.causes and search.left == [BREAK]


def test_what_does_not_occur_again_is_no_difference_to_explain() -> None:
    search = Search([BREAK, NUMBERS], lambda flip: [BREAK], time.monotonic() + 60, lambda text: None)
    search.control()
    assert search.unstable == [NUMBERS] and search.left == [BREAK]


def test_what_two_runs_of_one_environment_differ_in_is_no_difference_to_explain() -> None:
    both = [BREAK, KERNELS]
    search = Search(both, lambda flip: both, time.monotonic() + 60, lambda text: None, lambda: [KERNELS])
    search.control()
    assert search.unstable == [KERNELS] and search.left == [BREAK]


def test_old_values_and_new_switches_are_taken_back() -> None:
    before = Facts(settings={"m.same": "1", "m.changed": "1", "m.gone": "True"}, packages={"torch": "2.13"})
    after = Facts(
        settings={"m.same": "1", "m.changed": "2", "m.new": "True", "m.size": "8"}, packages={"torch": "2.14"}
    )
    changes = environment_changes(before, after)
    assert old_settings(changes) == {"m.changed": "1", "m.new": "False"}
    assert [one.words for one in changes] == [
        "m.changed was 1, now 2", "m.gone was True, now missing", "m.new is new: True", "m.size is new: 8",
        "torch was 2.13, now 2.14",
    ]  # fmt: skip
    assert environment_changes(before, before) == []


def test_only_plain_values_are_settings() -> None:
    assert literal({"a": (1, None)}) == "{'a': (1, None)}" and literal({2, 1}) == "[1, 2]"
    assert literal(len) is None and literal("x" * 5000) is None
