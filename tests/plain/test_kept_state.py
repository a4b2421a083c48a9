"""What a call changes outside of its inputs is seen, and put back before the next one."""

from __future__ import annotations

import importlib.util
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from irscope.protocol import FoundEvidence
from irscope.runner import kept_state
from irscope.runner.compared import compared, settled, unsteady_places
from irscope.runner.kept_state import GONE, KeptState
from irscope.runner.leaves import OPAQUE

SCRIPT = """\
import collections, contextvars, io, itertools, logging, queue, random, sys

steps, losses, stats, seen = 0, [1.0], {"clipped": 0}, {"a"}
waiting, ids, modules = collections.deque([1, 2]), itertools.count(), sys.modules

buf, text, raw, stream = io.BytesIO(), io.StringIO(), bytearray(b"a"), random.Random(0)
waiting_for, log, request = queue.Queue(), logging.getLogger("kept"), contextvars.ContextVar("request", default=0)

class Slots:
    __slots__ = ("n",)

slots = Slots()
slots.n = 0

class Meter:
    total = 0
    def __init__(self):
        self.values = []

meter = Meter()

def default(new, known=[]):
    known.append(new)

def outer():
    turns = 0
    def inner():
        nonlocal turns
        turns += 1
    return inner

inner = outer()

def with_log():
    log = []
    class Rule:
        @staticmethod
        def note():
            log.append(1)
    return Rule

Rule = with_log()

def target():
    global steps
    CHANGE
"""


class Tensor:
    """In place of torch's: plain tests run without it."""


@pytest.fixture
def state_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], tuple[Any, Any, KeptState]]:
    torch = types.SimpleNamespace(Tensor=Tensor, nn=types.SimpleNamespace(Module=type("Module", (), {})))
    monkeypatch.setitem(sys.modules, "torch", torch)

    def made(change: str) -> tuple[Any, Any, KeptState]:
        path = tmp_path / "kept.py"
        monkeypatch.setattr(kept_state, "is_user_file", lambda file: file == str(path))  # not the tests
        path.write_text(SCRIPT.replace("CHANGE", change))
        spec = importlib.util.spec_from_file_location("kept", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "kept", module)
        spec.loader.exec_module(module)
        program = module.inner if change == "inner" else module.target
        return module, program, KeptState(program)

    return made


@pytest.mark.parametrize(
    ("change", "changed"),
    [
        ("pass", {}),
        ("steps += 1", {"steps": 1}),
        ("losses.append(2.0)", {"losses[1]": 2.0}),
        ("losses.pop()", {"losses[0]": GONE}),
        ('stats["clipped"] += 1', {"stats['clipped']": 1}),
        ('seen.add("b")', {"seen": "a, b"}),
        ("waiting.popleft()", {"waiting[0]": 2, "waiting[1]": GONE}),
        ("meter.values.append(3)", {"meter.values[0]": 3}),
        ("Meter.total += 1", {"Meter.total": 1}),
        ("default(4)", {"default.default 0[0]": 4}),
        ("default.calls = 1", {"default.calls": 1}),
        ("inner", {"turns": 1}),
        ('buf.write(b"ab")', {"buf": "b'ab' at 2 of 2"}),
        ('text.write("ab")', {"text": "'ab' at 2 of 2"}),
        ('raw.extend(b"b")', {"raw": "bytearray(b'ab')"}),
        ("waiting_for.queue.append(3)", {"waiting_for.queue[0]": 3}),
        ("log.setLevel(logging.ERROR)", {"log (its settings)": "40 False True [] 0"}),
        ("request.set(2)", {"request": 2}),
        ("slots.n = 1", {"slots.n": 1}),
        ('stats["clipped"] = stats.pop("clipped")', {}),
        ("stats.update(a=1)", {"stats (its keys)": "clipped, a", "stats['a']": 1}),
        ("Rule.note()", {"Rule.note.log[0]": 1}),
    ],
)
def test_what_a_call_changes_is_put_back(state_of: Any, change: str, changed: dict[str, Any]) -> None:
    module, program, state = state_of(change)
    same = module.losses, module.stats, module.modules
    program()
    assert {place.removeprefix("kept."): value for place, value in state.changed().items()} == changed
    state.put_back()
    if change != "default.calls = 1":  # a name that was not there stays
        assert state.changed() == {}
    assert (module.losses, module.stats, module.modules) == same and module.modules is sys.modules


def test_a_counter_is_seen(state_of: Any) -> None:
    _, program, state = state_of("next(ids)")
    program()
    assert state.changed() == {"kept.ids (its position)": "1"}


def test_a_stream_of_random_numbers_is_put_back(state_of: Any) -> None:
    module, program, state = state_of("stream.random()")
    before = module.stream.getstate()
    program()
    assert list(state.changed()) == ["kept.stream"]
    state.put_back()
    assert module.stream.getstate() == before


def test_what_each_call_changes_to_something_else_is_compared_as_changed(state_of: Any) -> None:
    """A clock or an identifier; not what is the same each time."""
    first = {
        "result": 1,
        "changed t[0]": 0.5,
        "changed id": "a",
        "changed t['a']": 0.5,
        "changed s": 0.5,
        "changed n": 3,
    }
    again = {
        "result": 1,
        "changed t[0]": 0.7,
        "changed id": "b",
        "changed t['a']": 0.7,
        "changed s": 0.7,
        "changed n": 3,
    }
    unsteady = unsteady_places(first, again)
    assert unsteady == {"changed t[0]": False, "changed id": False, "changed t['a']": True, "changed s": True}
    expected = {"result": 1, "changed t[0]": OPAQUE, "changed id": OPAQUE, "changed n": 3}
    assert settled(unsteady, first) == settled(unsteady, again) == expected


@pytest.mark.parametrize(
    ("before", "now", "words"),
    [
        ({"result": 1}, {"result": 1, "changed hits[0]": 1}, "f: hits[0] is changed, too"),
        ({"result": 1, "changed hits[0]": 1}, {"result": 1}, "f: hits[0] is not changed"),
        ({"result": 1, "changed n": 1}, {"result": 1, "changed n": 2}, "f, changed n: 2 in place of 1"),
        ({"result": 1, "changed n": 1}, {"result": 1, "changed n": 1}, ""),
    ],
)
def test_a_change_that_only_one_run_makes_is_a_difference(before: Any, now: Any, words: str, state_of: Any) -> None:
    answer = FoundEvidence()
    compared({"f": before}, {"f": now}, answer)
    assert answer.differences == ((words,) if words else ())
