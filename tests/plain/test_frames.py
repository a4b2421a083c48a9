"""Looks at local variables of PyTorch's functions: each that is declared leaves a capture gap where it does not fit."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import irscope.internals
import pytest
from irscope.internals.frames import FrameLook, callers, is_in, report_to
from irscope.protocol import CaptureGap


def declared() -> Iterator[tuple[str, FrameLook]]:
    """Every look that a module of `irscope.internals` declares, alone or in a table, by its name."""
    for found in pkgutil.iter_modules(irscope.internals.__path__, "irscope.internals."):
        module = importlib.import_module(found.name)
        for name, value in vars(module).items():
            if isinstance(value, FrameLook):
                yield f"{found.name.rpartition('.')[2]}.{name}", value
            elif isinstance(value, dict):
                yield from ((f"{name}[{key}]", each) for key, each in value.items() if isinstance(each, FrameLook))


LOOKS = dict(declared())
each_look = pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS.keys())
OF_VARIABLES = {name: look for name, look in LOOKS.items() if look.local}
each_variable = pytest.mark.parametrize("look", OF_VARIABLES.values(), ids=OF_VARIABLES.keys())


def call_in(file: str, function: str, call: Callable[[], Any], **variables: Any) -> Any:
    """Calls something from a function of some name and file that has these local variables."""
    path = f"/site-packages/{file}some.py" if file.endswith("/") else f"/site-packages/{file}"
    source = f"def {function}(call, {', '.join(variables)}):\n    return call()\n"
    names: dict[str, Any] = {}
    exec(compile(source, path, "exec"), names)
    return names[function](call, **variables)


def heard(call: Callable[[], Any]) -> tuple[Any, list[CaptureGap]]:
    gaps: list[CaptureGap] = []
    undo = report_to(gaps.append)
    try:
        return call(), gaps
    finally:
        undo()


def nested(path: list[str], value: Any) -> Any:
    """An object from which the path leads to the value."""
    for name in reversed(path):
        value = types.SimpleNamespace(**{name: value})
    return value


def test_every_look_is_found() -> None:
    """A look that is made somewhere in a function, when that runs, would not be tested."""
    assert len(LOOKS) > 20
    for file in Path(irscope.internals.__path__[0]).glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and "FrameLook(" in ast.unparse(node):
                assert [type(each) for each in node.body] == [ast.Return], f"{file.name}: {node.name}"


@each_variable
def test_a_variable_that_is_missing_leaves_a_gap(look: FrameLook) -> None:
    value, gaps = heard(lambda: call_in(look.file, look.function or "some", look.find))
    assert value is None
    (gap,) = gaps
    assert gap.what == look.what
    assert gap.why.endswith(f"checked on torch {look.versions}")
    assert look.file in gap.why


@each_variable
def test_a_variable_of_another_kind_leaves_a_gap(look: FrameLook) -> None:
    first, *path = look.local.split(".")
    other = {first: nested(path, object())}
    value, gaps = heard(lambda: call_in(look.file, look.function or "some", look.find, **other))
    assert value is None
    assert [gap.what for gap in gaps] == [look.what]


@each_look
def test_a_function_that_is_not_running_leaves_a_gap_where_it_must_be(look: FrameLook) -> None:
    value, gaps = heard(look.find)
    assert value is None
    assert [gap.what for gap in gaps] == ([look.what] if look.required else [])


SUM = FrameLook("sums", "add", "torch/sums.py", "self.total", lambda value: isinstance(value, int), "2.13")


def test_the_innermost_frame_of_the_function_counts() -> None:
    def inner() -> Any:
        return call_in("torch/sums.py", "add", SUM.find, self=nested(["total"], 2))

    assert heard(lambda: call_in("torch/sums.py", "add", inner, self=nested(["total"], 1))) == (2, [])


def test_a_function_of_this_name_in_another_file_is_another() -> None:
    found = heard(lambda: call_in("mine/sums.py", "add", SUM.find, self=nested(["total"], 1)))
    assert found == (None, [CaptureGap("sums", "add of torch/sums.py is not on the stack; checked on torch 2.13")])


def test_gaps_go_to_the_receiver_that_came_last_and_then_to_nobody() -> None:
    outer: list[CaptureGap] = []
    undo = report_to(outer.append)
    assert len(heard(SUM.find)[1]) == 1
    assert outer == []
    SUM.find()
    undo()
    SUM.find()
    assert len(outer) == 1


def test_the_frames_below_the_caller() -> None:
    def inner() -> list[str]:
        return [frame.f_code.co_name for frame in callers()]

    def outer() -> list[str]:
        return inner()

    assert outer()[:2] == ["outer", "test_the_frames_below_the_caller"]


def test_files_and_folders_on_any_system() -> None:
    code = compile("", "C:\\site-packages\\torch\\_dynamo\\guards.py", "exec")
    assert is_in(code, "torch/_dynamo/guards.py")
    assert is_in(code, "torch/_dynamo/")
    assert not is_in(code, "torch/guards.py")
