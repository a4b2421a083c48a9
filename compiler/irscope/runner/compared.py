"""The evidence of two runs, compared."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

from irscope.protocol import FoundEvidence
from irscope.runner.calls import CHANGED, FORM, REQUIRES, SHARED, WITHOUT
from irscope.runner.leaves import OPAQUE, difference, rounding_of_gradients
from irscope.runner.library_state import POSITION
from irscope.vocabulary.visible import bounded

AT_END = "what it uses at the end"
"""The part of the evidence with the state that a program uses, at the end of the script."""
_ROOT = re.compile(rf"(?:{CHANGED})?(?:self\.)?([^.\[]*)")
_CHECKED = "RuntimeError"
"""What an assertion in a graph raises, whatever the original does."""
_ENTRY = re.compile(r"\[\d+\]$")
_GRADIENT = "gradient"
_MOST_DIFFERENCES = 5
_SLACK_AT_END = 8
"""How many times the rounding of one call is allowed in the state at the end: the steps of Adam add up."""


def compared(expected: dict[str, Any], found: dict[str, Any], answer: FoundEvidence) -> None:
    """Writes into the answer what was compared, and which part differs."""
    torch: Any = sys.modules["torch"]
    differs = differences(expected, found)
    answer.differences = tuple(bounded(text) for text, of_numbers in differs if of_numbers)[:_MOST_DIFFERENCES]
    types = [bounded(text) for text, of_numbers in differs if not of_numbers]
    types += [f"{place} no longer requires a gradient" for place in lost(REQUIRES, expected, found)]
    types += [f"{place} before, and not now" for place in lost(FORM, expected, found)]
    types += [f"{place} has the memory of an input now" for place in lost(SHARED, found, expected)]
    types += [
        f"{place} is a new tensor now, where it always had the memory of an input" for place in _views(expected, found)
    ]
    answer.types = tuple(types[:_MOST_DIFFERENCES])
    values = [(part, leaf) for part, one in expected.items() for leaf in one.values()]
    answer.tensors = sum(isinstance(leaf, torch.Tensor) for part, leaf in values)
    answer.opaque = sum(isinstance(leaf, str) and leaf.startswith(OPAQUE) for part, leaf in values)
    answer.gradients = sum(place.startswith(_GRADIENT) for one in expected.values() for place in one)
    answer.failed = sum("raised" in one for one in expected.values())
    answer.zeroed = tuple(lost(WITHOUT, expected, found))[:_MOST_DIFFERENCES]
    answer.copied = tuple(lost(SHARED, expected, found))[:_MOST_DIFFERENCES]


def lost(kind: str, expected: dict[str, Any], found: dict[str, Any]) -> Iterator[str]:
    """What is named under ``kind`` before and not now, in the calls that both have, as what has no gradient."""
    for name, one in expected.items():
        other = found.get(name, {})
        for wanted in one.get(kind, ()) if kind in other else ():
            if wanted not in other[kind]:
                yield bounded(f"{name}: {wanted}")


def _views(expected: dict[str, Any], found: dict[str, Any]) -> Iterator[str]:
    """Results that have the memory of an input in each call of the original, and not now: that is what they are for."""
    calls: dict[str, list[set[str]]] = {}
    for name, one in expected.items():
        if SHARED in one:
            calls.setdefault(name.partition(": ")[0], []).append(set(one[SHARED]))
    always = {program: set.intersection(*shared) for program, shared in calls.items()}
    for text in dict.fromkeys(lost(SHARED, expected, found)):
        program, _, rest = text.partition(": ")
        if rest.rpartition(": ")[2] in always.get(program, ()):
            yield text


def differences(expected: dict[str, Any], found: dict[str, Any]) -> list[tuple[str, bool]]:
    """What differs, in words, and whether numbers do."""
    torch: Any = sys.modules["torch"]
    differs: list[tuple[str, bool]] = []
    if list(expected) != list(found):
        missing = [name for name in (*expected, *found) if (name in expected) != (name in found)]
        return [(f"{missing[0] if missing else 'the order of calls'}: only in one of the runs", True)]
    for name, call in expected.items():
        other = found[name]
        if "raised" in call and "raised" in other:
            if _is_other_error(call["raised"], other["raised"]):
                differs.append((f"{name}: it raises {other['raised']}, where it raised {call['raised']}", True))
            continue
        if is_end := name.endswith(AT_END):
            roots = set(map(_root, call))
            other = {place: value for place, value in other.items() if _root(place) in roots}
        if call.keys() != other.keys():
            differs.append((f"{name}: {_only_in_one(call, other)}", True))
            continue
        floor = rounding_of_gradients(leaf for place, leaf in call.items() if place.startswith(_GRADIENT))
        for place, leaf in call.items():
            if place in (WITHOUT, SHARED, REQUIRES, FORM):
                continue
            slack = _SLACK_AT_END if is_end else 1
            is_rounded = place.startswith(_GRADIENT) and getattr(leaf, "dtype", None) == torch.float32
            words, of_numbers = difference(leaf, other[place], slack, floor if is_rounded else 0.0)
            # A number that is passed, or kept in a global, may become a tensor.
            may_change = not isinstance(leaf, torch.Tensor) if is_end else place.startswith("input")
            if words and (of_numbers or not may_change):
                differs.append((f"{name}, {place or 'result'}: {words}", of_numbers))
    return differs


def _root(place: str) -> str:
    """The name at the beginning of a place: ``history[2]`` is in ``history``."""
    match = _ROOT.match(place)
    return match[1] if match is not None else place


def settled_at_end(unsteady: dict[str, bool], found: dict[str, Any]) -> dict[str, Any]:
    """The state at the end without what a further call changes to something else each time."""
    roots = set(map(_root, unsteady))
    return {place: value for place, value in found.items() if _root(place) not in roots or place.endswith(POSITION)}


def _is_other_error(expected: str, found: str) -> bool:
    """Whether another error is raised.  Errors of torch's stand for others; an assertion may become another."""
    before, now = (text.partition(":")[0] for text in (expected, found))
    return before != now and now != _CHECKED and not any(name.startswith("torch.") for name in (before, now))


def _only_in_one(expected: dict[str, Any], found: dict[str, Any]) -> str:
    """Says that only one run raises; else which of the places of results that only one has is the first, in words."""
    for call, side in ((found, "now"), (expected, "before")):
        if "raised" in call:
            return f"it raises {call['raised']} only {side}"
    place = next(place for place in (*expected, *found) if (place in expected) != (place in found))
    if not place.startswith(CHANGED):
        return f"{place} is {'missing now' if place in expected else 'new'}"
    now = "is not changed" if place in expected else "is changed, too"
    return f"{place.removeprefix(CHANGED)} {now}"


def unsteady_places(first: dict[str, Any], again: dict[str, Any]) -> dict[str, bool]:
    """What two otherwise equal calls change to something else, and whether it is a clock's: a float.

    An entry that is added to a list has to be added by both, whatever it is.
    """
    places = [place for place in first if place in again and place.startswith(CHANGED)]
    return {
        place: isinstance(first[place], float) and isinstance(again[place], float) and not _ENTRY.search(place)
        for place in places if difference(first[place], again[place])[0]
    }  # fmt: skip


def settled(unsteady: dict[str, bool], found: dict[str, Any]) -> dict[str, Any]:
    """The values that do not come from a clock.  For other unsteady values, such as an identifier, only the fact that
    they changed
    counts."""
    if not unsteady:
        return found
    return {
        place: OPAQUE if place in unsteady else value
        for place, value in found.items() if not unsteady.get(place, False)
    }  # fmt: skip
