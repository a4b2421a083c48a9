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


@dataclass(frozen=True)
class Settings:
    """What the user set, checked, with defaults for the rest."""

    python: str = ""
    store_path: str = ""
    on_save: Lane | None = Lane.FAST
    """Lane of the run that an open or a save starts; nothing: none is started."""
    budget_seconds: float = 60.0
    """0: no limit."""
    args: tuple[str, ...] = ()
    cwd: str = ""
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def interpreter(self) -> str:
        """The interpreter that runs scripts; without a setting the one the server runs in."""
        return os.path.expanduser(self.python) if self.python else sys.executable

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

    budget = values.get("run.budgetSeconds")
    args = values.get("run.args")
    env = values.get("run.env")
    on_save = take("run.onSave", "'fast', 'deep' or 'off'", values.get("run.onSave") in ("fast", "deep", "off"), "fast")
    settings = Settings(
        python=text("python"),
        store_path=text("storePath"),
        on_save=None if on_save == "off" else Lane(on_save),
        budget_seconds=float(
            take(
                "run.budgetSeconds",
                "a number of seconds, 0 or more",
                isinstance(budget, (int, float)) and not isinstance(budget, bool) and budget >= 0,
                60.0,
            )
        ),
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
    )
    return settings, complaints


def _flat(source: Mapping[str, Any]) -> dict[str, Any]:
    """``{"run": {"onSave": …}}`` and ``{"run.onSave": …}`` are the same."""
    flat: dict[str, Any] = {}
    for key, value in source.items():
        if key == "run" and isinstance(value, Mapping):
            flat.update({f"run.{name}": inner for name, inner in value.items()})
        else:
            flat[str(key)] = value
    return flat
