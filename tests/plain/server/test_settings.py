"""Settings from whatever a client sends."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from irscope.protocol import Lane
from irscope.vocabulary.limits import LIMITS, Budget
from irscope.vocabulary.setting import Goes
from irscope.vocabulary.settings import SETTINGS
from irscope_server.base.limits import memory_bytes
from irscope_server.base.settings import Settings, read_settings


def test_defaults() -> None:
    settings, complaints = read_settings(None, {}, None)
    assert settings == Settings() and complaints == []
    assert settings.on_save is Lane.FAST and settings.limits["run.budgetSeconds"] == 60
    assert settings.interpreter == sys.executable


def test_later_sources_win_and_both_spellings_count() -> None:
    settings, _ = read_settings(
        {"python": "/a", "run": {"onSave": "deep", "args": ["x"]}}, {"python": "/b", "run.budgetSeconds": 0}
    )
    assert settings.python == "/b" and settings.on_save is Lane.DEEP
    assert settings.args == ("x",) and settings.limits["run.budgetSeconds"] == 0


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
        ({"run": {"entry": [1]}}, "irscope.run.entry"),
        ({"run": {"entryOf": {"a.py": 1}}}, "irscope.run.entryOf"),
        ({"run": {"memoryBudgetMegabytes": -1}}, "irscope.run.memoryBudgetMegabytes"),
        ({"run": {"steadyCalls": "often"}}, "irscope.run.steadyCalls"),
        ({"run": {"useLaunchConfigurations": 1}}, "irscope.run.useLaunchConfigurations"),
        ({"run": {"deepBudgetSeconds": "1"}}, "irscope.run.deepBudgetSeconds"),
        ({"worker": {"enabled": 1}}, "irscope.worker.enabled"),
        ({"worker.idleMinutes": -1}, "irscope.worker.idleMinutes"),
        ({"severity": []}, "irscope.severity"),
        ({"severity": {"GB0059": "loud"}}, "irscope.severity of GB0059"),
        ({"baseline": 1}, "irscope.baseline"),
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


def test_each_lane_has_its_budget() -> None:
    settings, _ = read_settings(
        {"run": {"budgetSeconds": 5, "deepBudgetSeconds": 0, "memoryBudgetMegabytes": 100, "outputBudgetMegabytes": 0}}
    )
    assert settings.budget(Lane.FAST) == Budget(seconds=5, memory=100_000_000, output=None, steady_calls=32)
    assert settings.budget(Lane.DEEP) == Budget(seconds=None, memory=100_000_000, output=None, steady_calls=None)
    assert Settings().budget(Lane.DEEP).seconds == 600
    assert read_settings({"run": {"memoryBudgetMegabytes": 0}})[0].budget(Lane.FAST).memory is None


def test_memory_is_bounded_by_what_the_machine_has() -> None:
    machine = memory_bytes()
    assert machine is not None and machine > 100_000_000
    assert Settings().budget(Lane.FAST).memory == pytest.approx(0.75 * machine, rel=1e-6)


def test_entries_are_one_or_many() -> None:
    assert read_settings({"run": {"entry": "train.py"}})[0].entry == ("train.py",)
    assert read_settings({"run.entry": ["a.py", " "]})[0].entry == ("a.py",)
    assert read_settings({"run": {"entry": ["a.py"], "entryOf": {"x.py": "a.py"}}})[0].entry_of == {"x.py": "a.py"}


def test_the_manifest_has_these_settings() -> None:
    """The extension's manifest and the server agree on names and defaults."""
    manifest = json.loads((Path(__file__).parents[3] / "package.json").read_text())
    properties = manifest["contributes"]["configuration"]["properties"]
    given = {
        name.removeprefix("irscope."): facts["default"]
        for name, facts in properties.items()
        if name != "irscope.trace.server"
    }
    assert read_settings(given) == (Settings(), [])
    assert set(given) == {key for key, row in SETTINGS.items() if row.goes in (Goes.SERVER, Goes.CLIENT)}
    assert set(given) >= {
        "python", "storePath", "run.onSave", "run.budgetSeconds", "run.deepBudgetSeconds", "run.memoryBudgetMegabytes",
        "run.outputBudgetMegabytes", "run.steadyCalls", "run.deepWhenIdle", "fixes.trySeconds", "run.symbolicTrace", "run.entry", "run.entryOf",
        "run.launchConfiguration", "run.useLaunchConfigurations", "run.args", "run.cwd",
        "run.env", "severity", "baseline", "inlayHints.enabled", "decorations.enabled", "agents.allowRun", "worker.enabled", "worker.layers", "worker.idleMinutes",
    }  # fmt: skip


def test_each_limit_can_be_set_for_each_lane_that_has_it() -> None:
    """What a user sets in the units of a setting is what `Budget` gets."""
    for name, row in LIMITS.items():
        for setting in row.settings:
            settings, complaints = read_settings({setting.key: 7})
            assert complaints == []
            for lane in Lane:
                budget = getattr(settings.budget(lane), name)
                if row.setting_for(lane) is setting:
                    assert budget == 7 * row.unit.scale, (name, lane)
                else:
                    assert budget != 7 * row.unit.scale, (name, lane)


def test_a_severity_of_another_type_is_named() -> None:
    settings, (complaint,) = read_settings({"severity": {"GB0059": ["off"], "recompilation": "hint"}})
    assert settings.severity == {"recompilation": "hint"}
    assert complaint.startswith("The setting irscope.severity of GB0059 must be one of 'error', 'warning'")
