"""The user's settings, read from the client's initialization options and its configuration.

`irscope.vocabulary.settings` declares them; this module checks what a client sends.
"""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Mapping
from typing import Any

from irscope.protocol import Budget, Lane
from irscope.store.store import default_path
from irscope.vocabulary.limits import LIMITS, budget_of
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.setting import SECTION as SECTION
from irscope.vocabulary.setting import Kind, Setting, row_of
from irscope.vocabulary.settings import OFF, SETTINGS, SettingValues

from irscope_server.base.limits import memory_bytes

_MOST = 1e12
"""The largest number as a value: what gets it would not take more."""
_SHARE_OF_MEMORY = 0.75
"""The share of the machine's memory that a run may use by default."""
_GROUPS = {key.partition(".")[0] for key in SETTINGS if "." in key}
"""What clients may send as an object of settings: ``{"run": {"onSave": …}}``."""


@dataclass(frozen=True)
class Settings(SettingValues):
    """What the user set, checked, with defaults for the rest; and what follows from it."""

    @property
    def interpreter(self) -> str:
        """The interpreter that runs scripts; without a setting the one the server runs in."""
        return os.path.expanduser(self.python) if self.python else sys.executable

    @property
    def store(self) -> str:
        """The path of the run store."""
        return os.path.expanduser(self.store_path) if self.store_path else default_path()

    def budget(self, lane: Lane) -> Budget:
        """The limits of a run in the lane."""
        values: dict[str, float | None] = {}
        for name, row in LIMITS.items():
            setting = row.setting_for(lane)
            values[name] = self.limits[setting.key] if setting is not None else 0
        if values["memory"] is None and (machine := memory_bytes()):
            values["memory"] = _SHARE_OF_MEMORY * machine / LIMITS["memory"].unit.scale
        return budget_of(values)


def read_settings(*sources: Any) -> tuple[Settings, list[str]]:
    """Settings from the client's objects, and a complaint for each value that is invalid.

    Later sources have priority over earlier ones.  An empty string and null mean that nothing is set: clients send
    defaults for
    what the user has not set.  A value of the wrong type is passed over; the others still count.
    """
    given: dict[str, Any] = {}
    for source in sources:
        if isinstance(source, Mapping):
            given.update({key: value for key, value in _flat(source).items() if value is not None and value != ""})
    reader = _Reader(given)
    values: dict[str, Any] = {}
    for one in dataclasses.fields(SettingValues):
        row = row_of(one)
        if row is not None and row.key in given:
            values[one.name] = reader.read(row, getattr(_DEFAULTS, one.name))
    limits = {key: reader.read(SETTINGS[key], default) for key, default in _DEFAULTS.limits.items()}
    return Settings(**values, limits=limits), reader.complaints


_DEFAULTS = Settings()


class _Reader:
    """Checks values against their rows.

    Args:
        given: What clients sent, by key; only what is set.
    """

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given = given
        self.complaints: list[str] = []

    def read(self, row: Setting, default: Any) -> Any:
        """The value for the server; the default where it is missing or invalid, the latter with a complaint."""
        value: Any = self._given.get(row.key)
        if value is None:
            return default
        if row.kind is Kind.ENTRIES and isinstance(value, str):
            value = [value]
        if not _fits(row, value):
            self._complain(row.name, _wanted(row), self._given[row.key])
            return default
        if row.kind is Kind.CHOICE_MAP:
            return self._choices(row, value)
        return _converted(row, value)

    def _choices(self, row: Setting, value: Mapping[Any, Any]) -> dict[str, str]:
        wanted = f"one of {', '.join(repr(one) for one in row.choices)}"
        known: dict[str, str] = {}
        for name, chosen in value.items():
            if isinstance(chosen, str) and chosen in row.choices:
                known[str(name)] = chosen
            else:
                self._complain(f"{row.name} of {name}", wanted, chosen)
        return known

    def _complain(self, name: str, wanted: str, value: Any) -> None:
        self.complaints.append(f"The setting {name} must be {wanted}; it is {value!r} and is ignored.")


def _fits(row: Setting, value: Any) -> bool:
    """Whether the value has the type of the setting."""
    kind = row.kind
    if kind is Kind.NUMBER:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0
    if kind is Kind.TEXTS or kind is Kind.ENTRIES:
        return isinstance(value, (list, tuple)) and all(isinstance(one, str) for one in value)
    if kind is Kind.TEXT_MAP:
        return isinstance(value, Mapping) and all(isinstance(one, str) for one in value.values())
    if kind is Kind.CHOICE or kind is Kind.LANE:
        return isinstance(value, str) and value in row.choices
    if kind is Kind.LAUNCH:
        return True  # the client takes it from the editor as it is; `_converted` leaves out what is not an object
    types: dict[Kind, type] = {Kind.TEXT: str, Kind.FLAG: bool, Kind.VARIABLES: Mapping, Kind.CHOICE_MAP: Mapping}
    return isinstance(value, types[kind])


def _wanted(row: Setting) -> str:
    """What a complaint says that the value must be."""
    if row.kind is Kind.NUMBER:
        return f"a number of {row.unit}, 0 or more"
    if row.kind is Kind.CHOICE or row.kind is Kind.LANE:
        *first, last = (repr(one) for one in row.choices)
        return f"{', '.join(first)} or {last}"
    return {
        Kind.TEXT: "a string",
        Kind.FLAG: "true or false",
        Kind.TEXTS: "a list of strings",
        Kind.ENTRIES: "a list of strings",
        Kind.TEXT_MAP: "an object of strings",
    }.get(row.kind, "an object")


def _converted(row: Setting, value: Any) -> Any:
    """The value as `SettingValues` has it."""
    if row.kind is Kind.NUMBER:
        return float(min(value, _MOST))
    if row.kind is Kind.LANE:
        return None if value == OFF else Lane(value)
    if row.kind is Kind.TEXTS:
        return tuple(value)
    if row.kind is Kind.ENTRIES:
        return tuple(one for one in value if one.strip())
    if row.kind is Kind.TEXT_MAP:
        return {str(name): one for name, one in value.items() if one.strip()}
    if row.kind is Kind.VARIABLES:
        return {str(name): str(one) for name, one in value.items() if one is not None}
    if row.kind is Kind.LAUNCH:
        return [one for one in value if isinstance(one, Mapping)] if isinstance(value, (list, tuple)) else None
    return value


def _flat(source: Mapping[str, Any]) -> dict[str, Any]:
    """``{"run": {"onSave": …}}`` and ``{"run.onSave": …}`` are the same; ``severity`` and ``run.env`` are values."""
    flat: dict[str, Any] = {}
    for key, value in source.items():
        if key in _GROUPS and isinstance(value, Mapping):
            flat.update({f"{key}.{name}": inner for name, inner in value.items()})
        else:
            flat[str(key)] = value
    return flat
