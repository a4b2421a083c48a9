"""What autotuning chose in two runs: where another choice won, and by how much each choice won in its run."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from irscope.internals.tuning_hooks import option_name
from irscope.pipelines.registry import role_of
from irscope.protocol import Report
from irscope.store.store import Store
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.stages import Role
from irscope.vocabulary.units import duration, ratio
from irscope.vocabulary.visible import bounded

_MOST_TEXT = 500


@dataclass(frozen=True)
class Won:
    """A choice that won.

    Args:
        choice: By a name that is the same in every run: the template with its configuration, or the library call.
        seconds: What it took; None if that was not measured again.
        other_seconds: What the choice that won in the other run took in this one; None if it was not tried, or failed.
    """

    choice: str
    seconds: float | None
    other_seconds: float | None

    @property
    def words(self) -> str:
        """The choice, its time, and how much slower the other run's choice was."""
        if self.seconds is None:
            return self.choice
        text = f"{self.choice} ({duration(self.seconds)})"
        if self.other_seconds is None or not self.seconds:
            return f"{text}, the other was not timed"
        return f"{text}, the other took {ratio(self.other_seconds / self.seconds)}"


@dataclass(frozen=True)
class TunedChange:
    """An operator for which another choice won; ``file`` and ``line`` are of the newer run."""

    operator: str
    decision: str
    key: str
    file: str
    line: int
    before: Won
    after: Won


@dataclass(frozen=True)
class TunedDiff:
    """Operators with the same inputs in both runs: how many have the same choice, and those that have another one."""

    same: int
    changed: tuple[TunedChange, ...]


def tuned_diff(store: Store, before: str, after: str) -> TunedDiff | None:
    """What changed between two runs; None if one of them tuned nothing."""
    old, new = _chosen(store, store.report(before)), _chosen(store, store.report(after))
    if not old or not new:
        return None
    changed, same = [], 0
    for key, (row, times, winner) in new.items():
        if key not in old:
            continue
        _, old_times, old_winner = old[key]
        if winner == old_winner:
            same += 1
            continue
        changed.append(
            TunedChange(
                bounded(str(row.get("operator", "")), _MOST_TEXT), key[0], bounded(key[1], _MOST_TEXT),
                str(row.get("file", "")), row["line"] if isinstance(row.get("line"), int) else 0,
                Won(bounded(old_winner, _MOST_TEXT), old_times.get(old_winner), old_times.get(winner)),
                Won(bounded(winner, _MOST_TEXT), times.get(winner), times.get(old_winner)),
            )
        )  # fmt: skip
    return TunedDiff(same, tuple(sorted(changed, key=_gain, reverse=True)))


def _gain(change: TunedChange) -> float:
    """Seconds by which the old choice would be slower now."""
    after = change.after
    return (after.other_seconds or 0.0) - (after.seconds or 0.0) if after.other_seconds is not None else 0.0


_Chosen = tuple[dict[str, Any], dict[str, float], str]


def _chosen(store: Store, report: Report) -> dict[tuple[str, str], _Chosen]:
    """By decision and key: the operator, the seconds of its choices, and the one that won; of several the last."""
    return {
        (str(row["decision"]), str(row["key"])): (row, times, winner) for row, times, winner in _rows(store, report)
    }


def _rows(store: Store, report: Report) -> Iterator[_Chosen]:
    """What is not as expected is left out: the store may come from elsewhere."""
    for compile in report.compiles:
        for stage in compile.stages:
            if role_of(stage.name) is not Role.TUNING:
                continue
            data = store.stage_data(report.run, stage.id)
            for row in (data.get("operators") or ()) if isinstance(data, dict) else ():
                try:
                    names = [option_name(str(one["name"]), str(one["description"])) for one in row["choices"]]
                    times = {
                        name: float(one["seconds"])
                        for name, one in zip(names, row["choices"], strict=True)
                        if one["seconds"] is not None and math.isfinite(float(one["seconds"]))
                    }
                    if row["chosen"] is not None and isinstance(row["decision"], str) and isinstance(row["key"], str):
                        yield row, times, names[row["chosen"]]
                except (TypeError, KeyError, ValueError, IndexError, AttributeError):
                    continue
