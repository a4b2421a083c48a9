"""A private name of PyTorch's that is missing leaves a gap, and says so to who wanted it."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator

import pytest
from irscope.internals.frames import report_to
from irscope.internals.names import PrivateName
from irscope.protocol import CaptureGap


@pytest.fixture
def gaps() -> Iterator[list[CaptureGap]]:
    found: list[CaptureGap] = []
    undo = report_to(found.append)
    yield found
    undo()


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> str:
    made = types.ModuleType("like_torch._config")
    made.settings = types.SimpleNamespace(now=7)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, made.__name__, made)
    return made.__name__


def test_what_is_there_is_read(module: str, gaps: list[CaptureGap]) -> None:
    assert PrivateName("values", module, "settings.now", "2.13").get() == 7
    assert PrivateName("values", module, "", "2.13").find() is sys.modules[module]
    assert gaps == []


@pytest.mark.parametrize("name", ["settings.before", "setting.now"])
def test_what_was_renamed_leaves_a_gap(name: str, module: str, gaps: list[CaptureGap]) -> None:
    wanted = PrivateName("values", module, name, "2.9 to 2.13")
    why = f"there is no {module}.{name}; checked on torch 2.9 to 2.13"
    assert wanted.find() is None
    with pytest.raises(AttributeError, match=why):
        wanted.get()
    assert gaps == [CaptureGap("values", why)] * 2


def test_a_module_that_is_not_imported_leaves_a_gap_and_is_not_imported(gaps: list[CaptureGap]) -> None:
    assert PrivateName("values", "this", "", "2.13").find() is None
    assert "this" not in sys.modules
    assert [gap.why for gap in gaps] == ["there is no this; checked on torch 2.13"]
