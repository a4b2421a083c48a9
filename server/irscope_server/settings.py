"""The settings of docs/PROTOCOL.md, from the client's initialization options and its configuration."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from irscope.protocol import Budget, Lane
from irscope.store import default_path

from irscope_server.machine import memory_bytes

SECTION = "irscope"
_SHARE_OF_MEMORY = 0.75
"""Of the machine's memory that a run may hold where nothing is set."""
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
    memory_budget: float | None = None
    """Megabytes that a run's processes may hold; 0: no limit; nothing: three quarters of what the machine has."""
    output_budget: float = 64.0
    """Megabytes that a run may print; 0: no limit."""
    steady_calls: int = 32
    """Calls of compiled code, for each compile, without anything new after which a fast run has told all; 0: no such
    limit."""
    deep_when_idle: float = 0.0
    """Seconds without an edit after which a deep run follows a fast one; 0: none does."""
    symbolic_trace: bool = True
    """Whether a deep run records Dynamo's walk over the instructions."""
    entry: tuple[str, ...] = ()
    """What runs library modules, as `irscope_server.entries` reads it."""
    entry_of: Mapping[str, str] = field(default_factory=dict)
    """Entry by file: a path or a pattern, relative to the workspace folder."""
    launch_configuration: str = ""
    """Name of the configuration of ``launch.json`` whose arguments, environment and folder count."""
    use_launch: bool = True
    """Without a name: those of the configuration whose program is the script."""
    launch: Sequence[Mapping[str, Any]] | None = None
    """The editor's configurations, where it tells them; else the server reads ``.vscode/launch.json``."""
    args: tuple[str, ...] = ()
    cwd: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    severity: Mapping[str, str] = field(default_factory=dict)
    """By code or kind: one of `SEVERITIES`."""
    baseline: str = ""
    """Path of the file of findings that are not shown; relative ones start at the workspace folder."""
    inlay_hints: bool = False
    """Whether the shapes of compiled lines are shown in the source."""
    worker_enabled: bool = True
    worker_layers: bool = True
    """Whether the worker does a script's imports of installed packages ahead of the next run."""
    worker_idle_minutes: float = 30.0
    """0: a worker is never stopped for being idle."""

    @property
    def interpreter(self) -> str:
        """The interpreter that runs scripts; without a setting the one the server runs in."""
        return os.path.expanduser(self.python) if self.python else sys.executable

    def budget(self, lane: Lane) -> Budget:
        """The limits of a run."""
        deep = lane is Lane.DEEP
        memory = self.memory_budget
        if memory is None and (machine := memory_bytes()):
            memory = _SHARE_OF_MEMORY * machine / 1e6
        return Budget(
            seconds=(self.deep_budget_seconds if deep else self.budget_seconds) or None,
            memory=int(memory * 1e6) if memory else None,
            output=int(self.output_budget * 1e6) or None,
            steady_calls=None if deep else self.steady_calls or None,
        )

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

    def number_or_none(key: str, unit: str) -> float | None:
        value = values.get(key)
        good = isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0
        known = take(key, f"a number of {unit}, 0 or more", good, None)
        return None if known is None else float(known)

    def number(key: str, unit: str, default: float) -> float:
        known = number_or_none(key, unit)
        return default if known is None else known

    def strings(key: str) -> tuple[str, ...]:
        value = values.get(key)
        good = isinstance(value, (list, tuple)) and all(isinstance(one, str) for one in value)
        return tuple(take(key, "a list of strings", good, ()))

    def flag(key: str, default: bool = True) -> bool:
        return bool(take(key, "true or false", isinstance(values.get(key), bool), default))

    env = values.get("run.env")
    entry = values.get("run.entry")
    if isinstance(entry, str):
        values["run.entry"] = [entry]
    entry_of = values.get("run.entryOf")
    good = isinstance(entry_of, Mapping) and all(isinstance(one, str) for one in entry_of.values())
    entries = take("run.entryOf", "an object of strings", good, {})
    launch = values.get("launch")
    severity = values.get("severity")
    on_save = take("run.onSave", "'fast', 'deep' or 'off'", values.get("run.onSave") in ("fast", "deep", "off"), "fast")
    settings = Settings(
        python=text("python"),
        store_path=text("storePath"),
        on_save=None if on_save == "off" else Lane(on_save),
        budget_seconds=number("run.budgetSeconds", "seconds", 60.0),
        deep_budget_seconds=number("run.deepBudgetSeconds", "seconds", 600.0),
        memory_budget=number_or_none("run.memoryBudgetMegabytes", "megabytes"),
        output_budget=number("run.outputBudgetMegabytes", "megabytes", 64.0),
        steady_calls=int(number("run.steadyCalls", "calls", 32.0)),
        deep_when_idle=number("run.deepWhenIdle", "seconds", 0.0),
        symbolic_trace=flag("run.symbolicTrace"),
        entry=tuple(one for one in strings("run.entry") if one.strip()),
        entry_of={str(file): one for file, one in entries.items() if one.strip()},
        launch_configuration=text("run.launchConfiguration"),
        use_launch=flag("run.useLaunchConfigurations"),
        launch=[one for one in launch if isinstance(one, Mapping)] if isinstance(launch, (list, tuple)) else None,
        args=strings("run.args"),
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
        inlay_hints=flag("inlayHints.enabled", default=False),
        worker_enabled=flag("worker.enabled"),
        worker_layers=flag("worker.layers"),
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
        if key in ("run", "worker", "inlayHints") and isinstance(value, Mapping):
            flat.update({f"{key}.{name}": inner for name, inner in value.items()})
        else:
            flat[str(key)] = value
    return flat
