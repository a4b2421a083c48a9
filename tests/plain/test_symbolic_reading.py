"""Reading a symbolic trace that was written by hand, its text, and the recorder on translators that are none."""

from __future__ import annotations

import json
import types
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest
from irscope.events.recording import Recording
from irscope.events.symbolic import Recorder
from irscope.events.trackers import describe, stamp, text_of
from irscope.symbolic import text as symbolictext
from irscope.symbolic.lines import Lines
from irscope.symbolic.trace import Walk
from irscope.symbolic.variables import SymbolicVariable, variable_of

STRINGS = ["a.py", "f", "g", "LOAD_FAST", "x", "CALL", "1", "ConstantVariable 1", "relu", "guard", "y", "RETURN_VALUE"]


def walk_of(count: int = 200) -> dict[str, Any]:
    """``f`` runs one instruction again and again; every tenth calls ``g``, which has two."""
    data: dict[str, Any] = {
        "version": 1, "attempt": 0, "last": True, "seconds": 0.5, "strings": [*STRINGS, *map(str, range(count))],
        "codes": [[0, 1, 1], [0, 2, 10]],
        "instructions": [[0, 0, 3, 4, 2, 2, 4, 5], [0, 2, 5, 6, 3, 3, 0, 8], [1, 0, 3, 4, 11, 11, 0, 1]],
        "frames": [[0]], "steps": {"frame": [], "instruction": [], "caller": [], "kept": [], "pushes": [], "pushed": []},
        "locals": [], "nodes": [], "gone": [], "guards": [], "guards_gone": [], "outcomes": [],
    }  # fmt: skip
    steps = data["steps"]

    def step(frame: int, instruction: int, caller: int, kept: int, pushed: list[int]) -> int:
        for column, value in zip(steps, (frame, instruction, caller, kept, len(pushed)), strict=False):
            steps[column].append(value)
        steps["pushed"] += pushed
        return len(steps["frame"]) - 1

    for number in range(count):
        calls = number % 10 == 9
        here = step(0, 1 if calls else 0, -1, 0, [len(STRINGS) + number])
        data["locals"].append([here, 4, len(STRINGS) + number])
        if calls:
            data["frames"].append([1])
            inner = len(data["frames"]) - 1
            step(inner, 2, here, 0, [7])
            last = step(inner, 2, here, 1, [7])
            data["nodes"].append([last + 1, last, 0, 8])
            data["guards"].append([last + 1, here, 9])
    return data


def test_a_state_is_the_same_from_any_side() -> None:
    walk = Walk(walk_of())
    assert len(walk) == 240
    forwards = [walk.state(index) for index in range(240)]
    fresh = Walk(walk_of())
    assert [fresh.state(index) for index in reversed(range(240))] == forwards[::-1]
    first_call = next(step.index for step in walk if step.operation == "CALL")
    assert first_call == 9
    inside = walk.state(11)
    assert [(frame.function, frame.step) for frame in inside.frames] == [("g", 11), ("f", 9)]
    assert inside.frames[0].stack == ("ConstantVariable 1",) * 2
    assert inside.frames[1].locals == {"x": "9"}
    assert (inside.nodes, walk.state(12).nodes, walk.state(12).guards) == ((), ("relu",), ("guard",))
    assert walk.step(11).nodes == ("relu",) and walk.step(9).guards == ("guard",)
    assert walk.by_node("relu") == 11


def test_steps_around() -> None:
    walk = Walk(walk_of())
    assert (walk.over(9), walk.over(8), walk.over(10), walk.out(10), walk.caller(10)) == (12, 9, 11, 12, 9)
    assert (walk.back_over(12), walk.back_over(10), walk.back_over(0), walk.over(239)) == (9, 9, None, None)
    assert walk.at_line("a.py", 3) == [index for index in range(240) if walk.step(index).operation == "CALL"]


def test_what_went_is_not_there_any_more() -> None:
    data = walk_of()
    data["gone"] = [[13, 12, 0, 8]]
    data["guards"] = [[0, -1, 9, 9]]
    data["guards_gone"] = [[5, 4, 9]]
    walk = Walk(data)
    assert (walk.nodes(12), walk.nodes(13)) == (("relu",), ())
    assert (walk.guards(4), walk.guards(5)) == (("guard", "guard"), ("guard",))


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.update(version=2),
        lambda data: data.pop("steps"),
        lambda data: data["steps"]["kept"].pop(),
        lambda data: data["steps"]["pushed"].pop(),
        lambda data: data["steps"]["caller"].__setitem__(3, 3),
        lambda data: data["nodes"].append([1, 1, 0, 10**6]),
        lambda data: data.update(outcomes=5),
    ],
)
def test_data_that_does_not_hang_together(change: Any) -> None:
    data = walk_of()
    change(data)
    with pytest.raises(ValueError):
        Walk(data)


def test_numbers_that_point_at_nothing() -> None:
    """What is read only at its step is looked at when the trace is: a trace may come from elsewhere."""
    changes: list[Callable[[dict[str, Any]], Any]] = [
        lambda data: data["instructions"][1].__setitem__(2, 10**6),
        lambda data: data["instructions"][1].pop(),
        lambda data: data["instructions"][1].__setitem__(4, "7"),
        lambda data: data["steps"]["pushed"].__setitem__(5, -1),
        lambda data: data["steps"]["frame"].__setitem__(5, 10**6),
        lambda data: data["steps"]["kept"].__setitem__(5, None),
        lambda data: data["strings"].__setitem__(0, 5),
        lambda data: data["locals"].append([3, 1]),
        lambda data: data.update(listings=[[10**6]]),
        lambda data: data["guards"].append(["x", 1, 1]),
    ]
    for change in changes:
        data = walk_of()
        change(data)
        with pytest.raises(ValueError):
            Walk(data)


def test_listings() -> None:
    """A trace that has none lists what was walked over; else all instructions stand there in order."""
    data = walk_of()
    assert [each.operation for each in Walk(data).listing(0)] == ["LOAD_FAST", "CALL"]
    data["instructions"].append([0, 4, 11, 6, 3, 3, 0, 8])
    data["listings"] = [[0, 1, 3], [2]]
    walk = Walk(data)
    assert [(each.offset, each.operation) for each in walk.listing(0)] == [
        (0, "LOAD_FAST"), (2, "CALL"), (4, "RETURN_VALUE"),
    ]  # fmt: skip
    assert walk.codes() == [("a.py", "f", 1), ("a.py", "g", 10)]
    assert (walk.code_of(9), walk.code_of(10)) == (0, 1)
    assert walk.lines_walked() == {("a.py", 2), ("a.py", 3), ("a.py", 11)}


def test_steps_by_line() -> None:
    """Line 2 is walked over nine times (the jump back is a new visit), then line 3 calls ``g``, whose one line repeats."""
    lines = Lines(Walk(walk_of()))
    assert (lines.first(9), lines.line(9), lines.line(10)) == (9, 3, 11)
    assert (lines.over(9), lines.back(12), lines.back(10)) == (12, 9, 9)
    assert (lines.calls(9), lines.calls(8), lines.rest(9)) == ([10], [], [9])
    data = walk_of(10)
    data["instructions"][0][1] = 0
    data["instructions"].append([0, 1, 3, 4, 2, 2, 4, 5])  # another instruction of line 2, behind the first
    for step in (1, 3):
        data["steps"]["instruction"][step] = 3
    lines = Lines(Walk(data))
    assert lines.starts()[:3] == [0, 2, 4]  # line 2 again, as a loop in one line comes to it
    assert (lines.over(0), lines.over(1), lines.back(3), lines.back(2), lines.back(0)) == (2, 2, 2, 0, None)


@pytest.mark.parametrize(
    ("text", "variable"),
    [
        (
            "TensorVariable f32[s77, 8]cuda:0 = l_x_ from L['x']",
            SymbolicVariable("TensorVariable", "f32[s77, 8]cuda:0", "l_x_", "L['x']", "f32", ("s77", "8"), "cuda:0"),
        ),
        ("TensorVariable f32[]cpu = y", SymbolicVariable("TensorVariable", "f32[]cpu", "y", "", "f32", (), "cpu")),
        ("SymNodeVariable s77 = x", SymbolicVariable("SymNodeVariable", "s77", "x")),
        ("ConstantVariable 'a = b'", SymbolicVariable("ConstantVariable", "'a = b'")),
        ("ConstantVariable 'far from here'", SymbolicVariable("ConstantVariable", "'far from here'")),
        ("ConstantVariable 4 from L['n']", SymbolicVariable("ConstantVariable", "4", source="L['n']")),
        ("NullVariable", SymbolicVariable("NullVariable", "")),
        ("ListVariable of 3 from …h[0].items", SymbolicVariable("ListVariable", "of 3", source="…h[0].items")),
        ("not looked at yet: Tensor from L['x']", SymbolicVariable("", "Tensor", source="L['x']")),
    ],
)
def test_what_a_text_tells_of_a_variable(text: str, variable: SymbolicVariable) -> None:
    assert variable_of(text) == variable


def test_no_data() -> None:
    wrong: tuple[Any, ...] = (None, [], "x", {})
    for data in wrong:
        with pytest.raises(ValueError):
            Walk(data)


def test_the_text_has_a_limit_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symbolictext, "MOST_LINES", 220)
    text = symbolictext.text_of(Walk(walk_of()))
    assert text.count("… 2 steps of deeper calls are left out") == 20
    assert text.count("LOAD_FAST") == 180
    monkeypatch.setattr(symbolictext, "MOST_LINES", 20)
    text = symbolictext.text_of(Walk(walk_of()))
    assert "lines are left out" in text and len(text.splitlines()) == 41


# --- the recorder -----------------------------------------------------------------------------------------------------


class ConstantVariable:
    def __init__(self, value: object) -> None:
        self.value = value


class ListVariable:
    def __init__(self, items: list[object]) -> None:
        self.items = items


class LazyVariableTracker:
    def __init__(self, cache: object) -> None:
        self._cache = cache

    def __getattr__(self, name: str) -> object:
        raise AssertionError("this would realize it")


class Loud:
    def __repr__(self) -> str:
        raise AssertionError("the user's own repr")


def test_descriptions_realize_nothing_and_call_nothing() -> None:
    source = types.SimpleNamespace(name="L['n']")
    lazy = LazyVariableTracker(types.SimpleNamespace(vt=None, value=Loud(), source=source))
    assert describe(lazy) == "not looked at yet: Loud from L['n']"
    assert stamp(lazy) == -1
    lazy._cache.vt = ListVariable([1])  # type: ignore[attr-defined]
    assert (describe(lazy), stamp(lazy)) == ("ListVariable of 1", 1)
    assert describe(ConstantVariable(Loud())) == "ConstantVariable Loud"
    assert describe(ConstantVariable("x" * 100)) == "ConstantVariable '" + "x" * 38 + "…"
    assert describe(ConstantVariable(10**5000)) == "ConstantVariable int"
    assert stamp(ConstantVariable(1)) is None
    ordered = ListVariable(OrderedDict())  # type: ignore[arg-type]
    before = stamp(ordered)
    ordered.items["key"] = 1  # type: ignore[call-overload]
    assert (before, stamp(ordered)) == (0, 1)
    assert describe(object.__new__(type("Unheard", (), {}))) == "Unheard"
    node = types.SimpleNamespace(name="mul")
    named = ("TensorVariable f32[4]cpu", node, " from L['y']")
    node.name = "y"
    assert text_of(named) == "TensorVariable f32[4]cpu = y from L['y']"


def module_with(base: type, *others: type) -> types.ModuleType:
    module = types.ModuleType("symbolic_convert")
    module.InstructionTranslatorBase = base  # type: ignore[attr-defined]
    return module


def recorder(ended: list[Recording], failed: list[Exception]) -> Recorder:
    return Recorder(lambda: ("0/0", 0), ended.append, failed.append)


class Stepped:
    """As Dynamo's translators, as far as the hook goes."""

    def step(self) -> bool:
        self.instruction_pointer += 1
        return self.instruction_pointer < 3

    def run(self) -> None:
        while self.step():
            pass

    def __init__(self) -> None:
        self.instruction_pointer = 0


def test_a_hook_that_cannot_see_says_so() -> None:
    class OwnStep(Stepped):
        pass

    class NoStep:
        run = Stepped.run

    class Elsewhere(Stepped):
        def run(self) -> None:
            raise NotImplementedError

    class Compiled(Stepped):
        step = len  # type: ignore[assignment]

    for base in (NoStep, Elsewhere, Compiled):
        with pytest.raises((KeyError, AttributeError, TypeError)):
            recorder([], []).hook().apply(module_with(base))
    OwnStep.step = lambda self: True  # type: ignore[method-assign]
    with pytest.raises(AttributeError, match="overrides step"):
        recorder([], []).hook().apply(module_with(Stepped))
    del OwnStep.step


def test_a_translator_that_looks_otherwise_runs_on() -> None:
    """Without ``output`` nothing can be recorded; the steps run all the same, and the gap is told."""
    ended: list[Recording] = []
    failed: list[Exception] = []
    base = type("Base", (), {"step": Stepped.step, "run": Stepped.run, "__init__": Stepped.__init__})
    undo = recorder(ended, failed).hook().apply(module_with(base))
    translator = base()
    translator.run()
    assert translator.instruction_pointer == 3
    assert ended == [] and failed and all("output" in str(error) for error in failed)
    undo()
    assert base.step is Stepped.step  # type: ignore[attr-defined]


def test_what_is_recorded_is_json() -> None:
    ended: list[Recording] = []
    failed: list[Exception] = []
    base = type("Base", (), {"step": Stepped.step, "run": Stepped.run, "__init__": Stepped.__init__})
    recorder(ended, failed).hook().apply(module_with(base))
    translator: Any = base()
    instruction = types.SimpleNamespace(
        opname="NOP", arg=None, argval=None, argrepr=None, offset=0, positions=None, starts_line=7
    )
    translator.instructions = [instruction] * 3
    translator.f_code = walk_of.__code__
    translator.inline_depth = 0
    translator.stack = [ConstantVariable(1), ListVariable([])]
    translator.symbolic_locals = {"a": ListVariable([1])}
    graph, guards = types.SimpleNamespace(nodes=[]), types.SimpleNamespace(inner={})
    translator.output = types.SimpleNamespace(graph=graph, guards=guards)
    translator.run()
    assert failed == []
    (recording,) = ended
    walk = Walk(json.loads(json.dumps(recording.data())))
    assert [step.operation for step in walk] == ["NOP"] * 3
    state = walk.state(2)
    assert state.frames[0].stack == ("ConstantVariable 1", "ListVariable of 0")
    assert state.frames[0].locals == {"a": "ListVariable of 1"}
