"""What a run on a real device has chosen by timing, to be chosen again elsewhere.

`irscope.pipeline_captures.inductor.autotuning` has read it.
"""

from __future__ import annotations

import math
from typing import Any

from irscope.internals.tuning_hooks import option_name
from irscope.pipeline_captures.inductor.autotuning import PADDING, TEMPLATE
from irscope.pipelines.inductor.stages import AUTOTUNING
from irscope.protocol import Choices
from irscope.store.store import Store

_RUNS_LOOKED_AT, _MOST_RUNS = 1000, 20
_OLD_STAGE = "timed-choices"
"""Where runs of irscope 0.1 before this version kept the choices: ``{"choices": [{kind, key, chosen, options}]}``."""


def choices_of(store: Store, devices: tuple[str, ...]) -> Choices | None:
    """The choices of a store's newest runs on one of these devices; where several have chosen for one key, the newest
    one's.

    What is not as expected is left out: the store may come from elsewhere.

    Args:
        devices: Names as PyTorch reports them.

    Returns None if no run was on one of them.
    """
    runs = [each.run for each in store.runs(_RUNS_LOOKED_AT) if store.device_of(each.run) in devices][:_MOST_RUNS]
    found = Choices({}, {})
    for run in reversed(runs):
        for compile in store.report(run, sizes=False).compiles:
            for stage in compile.stages:
                if stage.name in (AUTOTUNING.name, _OLD_STAGE):
                    data = store.stage_data(run, stage.id)
                    for row in _rows(data, "operators" if stage.name == AUTOTUNING.name else "choices"):
                        _take_in(row, found)
    return found if runs else None


def _rows(data: Any, key: str) -> list[Any]:
    rows = data.get(key) if isinstance(data, dict) else None
    return rows if isinstance(rows, list) else []


def _take_in(row: Any, into: Choices) -> None:
    try:
        decision, key, chosen = row.get("decision", row.get("kind")), str(row["key"]), row["chosen"]
        options = row.get("choices", row.get("options"))
        times = {
            option_name(str(one["name"]), str(one.get("description", ""))): _seconds(one["seconds"]) for one in options
        }
    except (AttributeError, TypeError, KeyError, ValueError):
        return
    if decision == PADDING and chosen in (0, 1):
        into.paddings[key] = bool(chosen)
    elif decision == TEMPLATE:
        into.templates[key] = times


def _seconds(value: Any) -> float | None:
    seconds = math.nan if value is None else float(value)
    return seconds if math.isfinite(seconds) else None
