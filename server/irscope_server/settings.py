"""The settings of docs/PROTOCOL.md, from the client's initialization options and its configuration."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from irscope.protocol import Lane
from irscope.store import default_path

SECTION = "irscope"
SEVERITIES = ("error", "warning", "information", "hint", "off")


@dataclass(frozen=True)
class Settings:
    """What the user set, checked, with defaults for the rest."""

    python: str = ""
    store_path: str = ""
    on_save: Lane | None = Lane.FAST
    """Lane of the run that an open or a save starts; nothing: none is started."""
    budget_seconds: float = 60.0
    """Of a fast run; 0: no limit."""
    deep_budget_seconds: float = 600.0
    """Of a deep run; 0: no limit."""
    args: tuple[str, ...] = ()
    cwd: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    severity: Mapping[str, str] = field(default_factory=dict)
    """By code or kind: one of `SEVERITIES`."""
    baseline: str = ""
    """Path of the file of findings that are not shown; relative ones start at the workspace folder."""
    worker_enabled: bool = True
    worker_idle_minutes: float = 30.0
    """0: a worker is never stopped for being idle."""

    @property
    def interpreter(self) -> str:
        """The interpreter that runs scripts; without a setting the one the server runs in."""
        return os.path.expanduser(self.python) if self.python else sys.executable

    def budget(self, lane: Lane) -> float | None:
        """Seconds after which a run is stopped; nothing: no limit."""
        return (self.deep_budget_seconds if lane is Lane.DEEP else self.budget_seconds) or None

    @property
    def store(self) -> str:
        return os.path.expanduser(self.store_path) if self.store_path else default_path()


def read_settings(*sources: Any) -> tuple[Settings, list[str]]:
    """Settings from the client's objects, later ones before earlier ones, and what was wrong with them.

    An empty string says nothing, as null does: clients send defaults for what the user has not set.
    A value of the wrong type is passed over with a message that names it; the others still count.
    """
    complaints: list[str] = []
    values: dict[str, Any] = {}
    for source in sources:
        if isinstance(source, Mapping):
            values.update({key: value for key, value in _flat(source).items() if value is not None and value != ""})

    def take(key: str, kind: str, good: bool, default: Any) -> Any:
        if values.get(key) is None:
            return default
        if not good:
            complaints.append(f"The setting {SECTION}.{key} must be {kind}; it is {values[key]!r} and is passed over.")
            return default
        return values[key]

    def text(key: str) -> str:
        return str(take(key, "a string", isinstance(values.get(key), str), ""))

    def number(key: str, unit: str, default: float) -> float:
        value = values.get(key)
        good = isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0
        return float(take(key, f"a number of {unit}, 0 or more", good, default))

    args = values.get("run.args")
    env = values.get("run.env")
    severity = values.get("severity")
    on_save = take("run.onSave", "'fast', 'deep' or 'off'", values.get("run.onSave") in ("fast", "deep", "off"), "fast")
    settings = Settings(
        python=text("python"),
        store_path=text("storePath"),
        on_save=None if on_save == "off" else Lane(on_save),
        budget_seconds=number("run.budgetSeconds", "seconds", 60.0),
        deep_budget_seconds=number("run.deepBudgetSeconds", "seconds", 600.0),
        args=tuple(
            take(
                "run.args",
                "a list of strings",
                isinstance(args, (list, tuple)) and all(isinstance(a, str) for a in args),
                (),
            )
        ),
        cwd=text("run.cwd"),
        env={
            str(name): str(value)
            for name, value in take("run.env", "an object", isinstance(env, Mapping), {}).items()
            if value is not None
        },
        severity={
            str(name): value
            for name, value in take("severity", "an object", isinstance(severity, Mapping), {}).items()
            if value in SEVERITIES or _complain_of_severity(complaints, str(name), value)
        },
        baseline=text("baseline"),
        worker_enabled=bool(
            take("worker.enabled", "true or false", isinstance(values.get("worker.enabled"), bool), True)
        ),
        worker_idle_minutes=number("worker.idleMinutes", "minutes", 30.0),
    )
    return settings, complaints


def _complain_of_severity(complaints: list[str], name: str, value: Any) -> bool:
    wanted = ", ".join(repr(one) for one in SEVERITIES)
    complaints.append(
        f"The setting {SECTION}.severity of {name} must be one of {wanted}; it is {value!r} and is passed over."
    )
    return False


def _flat(source: Mapping[str, Any]) -> dict[str, Any]:
    """``{"run": {"onSave": …}}`` and ``{"run.onSave": …}`` are the same; ``severity`` and ``run.env`` are values."""
    flat: dict[str, Any] = {}
    for key, value in source.items():
        if key in ("run", "worker") and isinstance(value, Mapping):
            flat.update({f"{key}.{name}": inner for name, inner in value.items()})
        else:
            flat[str(key)] = value
    return flat
