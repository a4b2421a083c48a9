"""What Inductor has chosen by timing, kept with the run, and chosen again where its machine is not.

The data of the stage ``timed-choices`` is ``{"choices": […]}``, in the order in which they were made:

===========  ===========================================================================================================
``kind``     ``template``: which template or library call an operator gets; ``padding``: whether its matrices are padded
``op``       Inductor's name of the operator
``node``     the name of the graph's node; empty if it is not known
``key``      sizes, strides and dtypes of what it reads, as Inductor writes them
``chosen``   the number of the option that was chosen; None if none could be timed
``options``  ``{"name", "seconds", "why"}`` each; ``seconds`` is None if it was not or could not be timed, and ``why`` then
             says why
===========  ===========================================================================================================
"""

from __future__ import annotations

import math
from typing import Any

from irscope.capture.run_book import RunBook
from irscope.internals.tuning_hooks import Timed
from irscope.pipelines.inductor.stages import TIMED_CHOICES
from irscope.store.store import Store
from irscope.vocabulary.records import dataclass
from irscope.vocabulary.units import count, duration, ratio

TEMPLATE, PADDING = "template", "padding"
PLAIN, PADDED = "as it is", "padded"
_MOST = 2000
_RUNS_LOOKED_AT, _MOST_RUNS = 1000, 20
_FROM_CACHE = "decided before, in Inductor's cache"


class Tuning:
    """Keeps book of the choices of a run; each graph's are a stage beside its output code."""

    def __init__(self, book: RunBook) -> None:
        self._book = book
        self._choices: dict[str, list[dict[str, Any]]] = {}  # by compile, those that are in no stage yet

    def tuned(self, op: str, key: str, node: str, options: list[Timed]) -> None:
        """See `irscope.internals.tuning_hooks.Tuned`."""
        self._add(TEMPLATE, op, key, node, options, fastest(options))

    def padded(self, op: str, key: str, node: str, seconds: tuple[float, float] | None, chosen: bool) -> None:
        """See `irscope.internals.tuning_hooks.Padded`."""
        plain, padded = seconds or (None, None)
        why = "" if seconds else _FROM_CACHE
        self._add(PADDING, op, key, node, [(PLAIN, plain, why), (PADDED, padded, why)], int(chosen))

    def code_written(self, compile: str, attempt: int, backward: bool) -> None:
        """The output code of a graph is in the store; what was chosen for it follows."""
        if (choices := self._choices.pop(compile, None)) is not None:
            data = {"choices": choices}
            self._book.put_stage(compile, TIMED_CHOICES.name, stage_text(data), attempt, data, backward)

    def _add(self, kind: str, op: str, key: str, node: str, options: list[Timed], chosen: int | None) -> None:
        book = self._book
        current = book.current() if book.is_open and not book.is_quiet else None
        choices = self._choices.setdefault(current[0], []) if current is not None else []
        if len(choices) < _MOST:
            rows = [{"name": name, "seconds": seconds, "why": why} for name, seconds, why in options]
            choices.append({"kind": kind, "op": op, "node": node, "key": key, "chosen": chosen, "options": rows})


def fastest(options: list[Timed]) -> int | None:
    """The number of the first option with the least time; None if none was timed."""
    timed = [number for number, (_, seconds, _) in enumerate(options) if seconds is not None]
    return min(timed, key=lambda number: options[number][1] or 0.0, default=None)


def stage_text(data: dict[str, Any]) -> str:
    """The stage for people: each choice with its options, the fastest first."""
    lines = [f"# {count(len(data['choices']), 'choice')} by timing"]
    for choice in data["choices"]:
        what = "padding of " if choice["kind"] == PADDING else ""
        node = f" [{choice['node']}]" if choice["node"] else ""
        lines += ["", f"{what}{choice['op']}{node}", f"  # {choice['key']}", *_option_lines(choice)]
    return "\n".join(lines) + "\n"


def _option_lines(choice: dict[str, Any]) -> list[str]:
    options, chosen = choice["options"], choice["chosen"]
    best = options[chosen]["seconds"] if chosen is not None else None
    order = sorted(range(len(options)), key=lambda i: (options[i]["seconds"] is None, options[i]["seconds"] or 0.0))
    lines = []
    for number in order:
        option, mark = options[number], "*" if number == chosen else " "
        if option["seconds"] is None:
            time, more = "-", f": {option['why']}" if option["why"] else ""
        else:
            time = duration(option["seconds"])
            more = f"  ({ratio(option['seconds'] / best)})" if best and number != chosen else ""
        lines.append(f"{mark} {time:>10}  {option['name']}{more}")
    return lines


# --- chosen again -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Choices:
    """What a run on a real device has chosen, by key; see `irscope.internals.tuning_hooks.Replay`."""

    templates: dict[str, dict[str, float | None]]
    paddings: dict[str, bool]

    def template(self, key: str) -> dict[str, float | None] | None:
        """Times in seconds by option."""
        return self.templates.get(key)

    def padding(self, key: str) -> bool | None:
        """Whether the device pads."""
        return self.paddings.get(key)


NOTHING = Choices({}, {})


def choices_of(store: Store, devices: tuple[str, ...]) -> Choices | None:
    """Those of a store's newest runs on one of these devices; where several have chosen for one key, the newest one's.

    What is not as expected is left out: the store may come from elsewhere.

    Parameters
    ----------
    devices
        Names as PyTorch reports them.

    Returns None if no run was on one of them.
    """
    runs = [each.run for each in store.runs(_RUNS_LOOKED_AT) if store.device_of(each.run) in devices][:_MOST_RUNS]
    templates: dict[str, dict[str, float | None]] = {}
    paddings: dict[str, bool] = {}
    for run in reversed(runs):
        for compile in store.report(run, sizes=False).compiles:
            for stage in compile.stages:
                data = store.stage_data(run, stage.id) if stage.name == TIMED_CHOICES.name else None
                for choice in data.get("choices", ()) if isinstance(data, dict) else ():
                    _take_in(choice, templates, paddings)
    return Choices(templates, paddings) if runs else None


def _take_in(choice: Any, templates: dict[str, dict[str, float | None]], paddings: dict[str, bool]) -> None:
    try:
        key, chosen = str(choice["key"]), choice["chosen"]
        times = {str(option["name"]): _seconds(option["seconds"]) for option in choice["options"]}
    except (TypeError, KeyError, ValueError):
        return
    if choice["kind"] == PADDING and chosen in (0, 1):
        paddings[key] = bool(chosen)
    elif choice["kind"] == TEMPLATE:
        templates[key] = times


def _seconds(value: Any) -> float | None:
    seconds = math.nan if value is None else float(value)
    return seconds if math.isfinite(seconds) else None
