"""The limits of a run: the settings, command-line flags and launch attributes of each are declared here, once.

A new limit is a member of `Limit` and a field of `Budget`.  driver/budgets.py enforces it.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from typing import Any

from irscope.vocabulary.lanes import Lane
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.setting import Kind, Setting, declared, row_of


class Limit(str, enum.Enum):
    """A limit of a run that can be reached; the outcome names it."""

    SECONDS = "seconds"
    MEMORY = "memory"
    OUTPUT = "output"
    STEADY_STATE = "steady-state"


@dataclass(frozen=True)
class Unit:
    """What a limit is given in.

    Args:
        name: In the plural: ``megabytes``.
        metavar: Its placeholder on the command line.
        scale: How many of the units of `Budget` one of it is.
        whole: Whether only whole numbers make sense, and 0 is written for no limit on the command line too.
    """

    name: str
    metavar: str
    scale: int = 1
    whole: bool = False

    def in_budget(self, value: float | None) -> float | None:
        """The value of a setting or flag as `Budget` has it.  None and 0: no limit."""
        if not value:
            return None
        value = min(value, _MOST)  # what the store and the messages of a run can hold, in any unit
        return (round(value * self.scale) or None) if self.whole or self.scale != 1 else float(value)


_MOST = 1e12
SECONDS = Unit("seconds", "SECONDS")
MEGABYTES = Unit("megabytes", "MB", scale=1_000_000)
CALLS = Unit("calls", "N", whole=True)


@dataclass(frozen=True)
class LimitRow:
    """How users set a limit.

    Args:
        limit: Its name in an outcome.
        unit: What its flag and settings are given in.
        flag, help: Its flag on the command line, and what ``--help`` says.
        commands: The commands of ``irscope`` that have the flag.
        settings: The settings of it: one for both lanes, or one for each.
        launch, launch_help: Its attribute of a launch configuration of the debugger, if it has one.
    """

    limit: Limit
    unit: Unit
    flag: str
    help: str
    settings: tuple[Setting, ...]
    commands: tuple[str, ...] = ("run",)
    launch: str = ""
    launch_help: str = ""

    def setting_for(self, lane: Lane) -> Setting | None:
        """Its setting for runs of a lane; None if such runs do not have the limit."""
        return next((one for one in self.settings if not one.lanes or lane.value in one.lanes), None)

    @property
    def where(self) -> str:
        """Where a user changes it: ``--budget (setting irscope.run.budgetSeconds)``."""
        plural = "s" if len(self.settings) > 1 else ""
        return f"{self.flag} (setting{plural} {' and '.join(one.name for one in self.settings)})"


def _setting(
    key: str, unit: Unit, default: float | None, short: str, text: str, lanes: tuple[str, ...] = ()
) -> Setting:
    return Setting(f"run.{key}", Kind.NUMBER, default, short, text, unit=unit.name, lanes=lanes)


_BUDGET = LimitRow(
    Limit.SECONDS, SECONDS, "--budget",
    "stop the script after this time; findings up to then are kept",
    commands=("run", "values", "diverge", "watch"),
    settings=(
        _setting(
            "budgetSeconds", SECONDS, 60,
            "a script in the fast lane is stopped after this many seconds; 0: no limit",
            "Stop a script in the fast lane after this many seconds. Findings up to then are kept. `0`: no limit.",
            lanes=(Lane.FAST.value,),
        ),
        _setting(
            "deepBudgetSeconds", SECONDS, 600,
            "the same for the deep lane",
            "Stop a run of the whole pipeline after this many seconds. Findings up to then are kept. `0`: no limit.",
            lanes=(Lane.DEEP.value,),
        ),
    ),
    launch="budgetSeconds",
    launch_help="Stop the script after this many seconds and debug what was compiled up to then. 0: no limit.",
)  # fmt: skip
_MEMORY = LimitRow(
    Limit.MEMORY, MEGABYTES, "--memory-budget",
    "stop the script if its processes together use more memory (10⁶ bytes, proportional set size)",
    settings=(
        _setting(
            "memoryBudgetMegabytes", MEGABYTES, None,
            "a run whose processes together use more is stopped; null: three quarters of the machine's memory (or of "
            "its container's); 0: no limit",
            "Stop a script whose processes together use more memory than this. Findings up to then are kept. "
            "Empty: three quarters of the machine's memory. `0`: no limit.",
        ),
    ),
)  # fmt: skip
_OUTPUT = LimitRow(
    Limit.OUTPUT, MEGABYTES, "--output-budget",
    "stop the script if it prints more than this; its output then goes through a pipe",
    settings=(
        _setting(
            "outputBudgetMegabytes", MEGABYTES, 64,
            "a run that prints more is stopped; 0: no limit",
            "Stop a script that prints more than this. `0`: no limit.",
        ),
    ),
)  # fmt: skip
_STEADY = LimitRow(
    Limit.STEADY_STATE, CALLS, "--steady-calls",
    "stop it after N calls of compiled code for each compile, and 3 s, without a new compile or finding",
    settings=(
        _setting(
            "steadyCalls", CALLS, 32,
            "stops a run in the fast lane when nothing new appears: after this many calls of compiled code for each "
            "compile, and three seconds, without a new compile or finding; 0: no limit",
            "Stop a script in the fast lane when nothing new appears, for example in a training loop. It stops after "
            "this many calls of compiled code for each compile, and at least three seconds, without a new compile or "
            "finding. `0`: no limit.",
            lanes=(Lane.FAST.value,),
        ),
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Budget:
    """The limits of a run; None: no limit."""

    seconds: float | None = declared(_BUDGET, None)
    """From its start on the clock."""
    memory: int | None = declared(_MEMORY, None)
    """Bytes of memory that its processes hold together."""
    output: int | None = declared(_OUTPUT, None)
    """Bytes that it prints."""
    steady_calls: int | None = declared(_STEADY, None)
    """Steady state: calls of compiled code since the last compile or finding, for each compile so far; see
    runner/steady.py."""


LIMITS: dict[str, LimitRow] = {one.name: row_of(one) for one in dataclasses.fields(Budget)}
"""By name of the field of `Budget`."""


def limit_row(limit: Limit) -> LimitRow:
    """The row of the limit that an outcome names."""
    return next(row for row in LIMITS.values() if row.limit is limit)


def budget_of(values: Mapping[str, float | None]) -> Budget:
    """The limits from values in the units of users, by field name of `Budget`; a missing value means no limit."""
    given: dict[str, Any] = {name: row.unit.in_budget(values.get(name)) for name, row in LIMITS.items()}
    return Budget(**given)
