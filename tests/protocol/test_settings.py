"""Settings from whatever a client sends."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from irscope.protocol import Lane
from irscope_server.settings import Settings, read_settings


def test_defaults() -> None:
    settings, complaints = read_settings(None, {}, None)
    assert settings == Settings() and complaints == []
    assert settings.on_save is Lane.FAST and settings.budget_seconds == 60 and settings.interpreter == sys.executable


def test_later_sources_win_and_both_spellings_count() -> None:
    settings, _ = read_settings(
        {"python": "/a", "run": {"onSave": "deep", "args": ["x"]}}, {"python": "/b", "run.budgetSeconds": 0}
    )
    assert settings.python == "/b" and settings.on_save is Lane.DEEP
    assert settings.args == ("x",) and settings.budget_seconds == 0


def test_off() -> None:
    assert read_settings({"run": {"onSave": "off"}})[0].on_save is None


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"python": 3}, "irscope.python"),
        ({"run": {"onSave": "often"}}, "irscope.run.onSave"),
        ({"run": {"budgetSeconds": -1}}, "irscope.run.budgetSeconds"),
        ({"run": {"budgetSeconds": True}}, "irscope.run.budgetSeconds"),
        ({"run": {"args": "a b"}}, "irscope.run.args"),
        ({"run": {"args": [1]}}, "irscope.run.args"),
        ({"run": {"env": []}}, "irscope.run.env"),
    ],
)
def test_a_wrong_value_is_named_and_the_others_count(given: dict[str, Any], named: str) -> None:
    settings, complaints = read_settings({**given, "storePath": "/s"})
    assert settings == Settings(store_path="/s")
    assert len(complaints) == 1 and complaints[0].startswith(f"The setting {named} must be")


def test_null_and_empty_mean_not_set() -> None:
    assert read_settings({"python": "/a", "storePath": "/s"}, {"python": "", "storePath": None})[0] == Settings(
        python="/a", store_path="/s"
    )
    assert read_settings({"python": None, "run": {"env": {"A": 1, "B": None}}})[0] == Settings(env={"A": "1"})
