"""The stage ``autotuning``: what Inductor chose by timing, for each operator of a graph.

Its data is ``{"operators": […]}``, in the order in which they were decided, each with

============  ==========================================================================================================
``decision``  ``template``: which template or library call the operator gets; ``padding``: whether its matrices are padded
``operator``  ``mm``, ``addmm``, ``convolution``, …
``node``      the graph's node; empty if it is not known
``file``      and ``line``: the user's line; empty and 0 if it is not known
``inputs``    ``float32[64, 128]`` of each input
``key``       sizes, strides and dtypes of what it reads, as Inductor writes them: the same on every machine
``choices``   ``name``, ``kind`` (``template``, ``library`` or ``padding``), ``description`` (the configuration), ``seconds``
              (null if it was not or could not be timed), ``why_not``.  The fastest of a template comes first; for a
              padding, first the matrices as they are
``chosen``    the number of the choice; null if none could be timed
``errors``    what was logged, if it is not known which choice it is about
``why``       for a device that is not here, where nothing is timed: why the choice is taken
``estimates`` with ``why``: seconds of each choice by a model of the device (`irscope.targets.tiles`); null: not known
============  ==========================================================================================================
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from irscope.capture.run_book import RunBook
from irscope.internals.tuning_hooks import Choice, Padded, Tuned
from irscope.pipelines.inductor.stages import AUTOTUNING
from irscope.usercode.user_files import is_user_file
from irscope.vocabulary.units import count, duration, ratio
from irscope.vocabulary.visible import bounded

TEMPLATE, PADDING = "template", "padding"
_PLAIN, _PADDED = "as it is", "padded"
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')
_MOST_OPERATORS, _MOST_CHOICES, _MOST_ERRORS = 2000, 500, 20
_FROM_CACHE = "decided before, in Inductor's cache"


class Autotuning:
    """Keeps book of the choices of a run; each graph's are a stage, which comes with its output code."""

    def __init__(self, book: RunBook) -> None:
        self._book = book
        self._operators: dict[str, list[dict[str, Any]]] = {}  # by compile, those that are in no stage yet

    def tuned(self, tuned: Tuned) -> None:
        """An operator has its template or library call."""
        self._add(operator_data(tuned))

    def padded(self, padded: Padded) -> None:
        """It is decided whether matrices are padded."""
        self._add(padding_data(padded))

    def code_written(self, compile: str, attempt: int, backward: bool) -> None:
        """The output code of a graph is in the store; what was chosen for it follows."""
        if operators := self._operators.pop(compile, None):
            data = {"operators": operators}
            self._book.put_stage(compile, AUTOTUNING.name, stage_text(operators), attempt, data, backward)

    def _add(self, operator: dict[str, Any]) -> None:
        book = self._book
        current = book.current() if book.is_open and not book.is_quiet else None
        if current is not None:
            operators = self._operators.setdefault(current[0], [])
            if len(operators) < _MOST_OPERATORS:
                operators.append(operator)


def operator_data(tuned: Tuned) -> dict[str, Any]:
    """What is kept of an operator, as plain JSON values."""
    file, line = _place(tuned.stack)
    unknown = [one for one in tuned.choices if one.seconds is None and not one.why_not]
    logged = [bounded(text.strip().split("\n")[0], 300) for text in tuned.errors[:_MOST_CHOICES]]
    each = dict(zip(map(id, unknown), logged, strict=True)) if len(logged) == len(unknown) else {}
    ordered = sorted(tuned.choices, key=lambda one: (one.seconds is None, one.seconds or 0.0))[:_MOST_CHOICES]
    is_known = bool(each) or not unknown
    predicted = {"why": tuned.why, "estimates": [one.estimate for one in ordered]} if tuned.why else {}
    return {
        "decision": TEMPLATE, "operator": tuned.operator, "node": tuned.node, "file": file, "line": line,
        "inputs": list(tuned.inputs), "key": tuned.key,
        "choices": [_choice_data(one, one.why_not or each.get(id(one), "")) for one in ordered],
        "chosen": tuned.chosen if ordered and (tuned.why or ordered[0].seconds is not None) else None,
        "errors": [] if is_known else logged[:_MOST_ERRORS], **predicted,
    }  # fmt: skip


def padding_data(padded: Padded) -> dict[str, Any]:
    """The same of a padding."""
    file, line = _place(padded.stack)
    why_not = "" if padded.seconds else _FROM_CACHE
    choices = [
        {"name": name, "kind": PADDING, "description": "", "seconds": seconds, "why_not": why_not}
        for name, seconds in zip((_PLAIN, _PADDED), padded.seconds or (None, None), strict=True)
    ]
    return {
        "decision": PADDING, "operator": padded.operator, "node": padded.node, "file": file, "line": line,
        "inputs": [], "key": padded.key, "choices": choices, "chosen": int(padded.is_padded), "errors": [],
    }  # fmt: skip


def _place(stack: str) -> tuple[str, int]:
    frames = [(match["file"], int(match["line"])) for match in _FRAME.finditer(stack)]
    mine = [frame for frame in frames if is_user_file(frame[0])] or frames
    return mine[-1] if mine else ("", 0)


def _choice_data(one: Choice, why_not: str) -> dict[str, Any]:
    kind = "library" if "Extern" in one.kind else "template"
    return {
        "name": one.name, "kind": kind, "description": bounded(one.description, 1000), "seconds": one.seconds,
        "why_not": bounded(why_not.split("\n")[0], 300),
    }  # fmt: skip


def stage_text(operators: Sequence[dict[str, Any]]) -> str:
    """The operators one below the other, each with its choices, the fastest first; between two is an empty line.

    `irscope.provenance.elements` finds the operators in it.
    """
    return "\n".join(_untimed_text(one) if one.get("why") else _operator_text(one) for one in operators)


def _operator_text(one: dict[str, Any]) -> str:
    choices = one["choices"]
    ordered = sorted(choices, key=lambda each: (not each["seconds"], each["seconds"] or 0.0))
    timed = [each for each in ordered if each["seconds"]]
    place = f" at {one['file']}:{one['line']}" if one["file"] else ""
    is_padding = one.get("decision") == PADDING  # runs of older versions have no decision
    what = f"padding of {one['operator']}" if is_padding else f"{one['operator']}({', '.join(one['inputs'])})"
    head = f"{what}{place}: {count(len(choices), 'choice')}"
    if is_padding:
        chosen = choices[one["chosen"]]
        head += f", {chosen['name']} ({duration(chosen['seconds']) if timed else chosen['why_not']})"
    elif timed:
        head += f", fastest {timed[0]['name']} ({duration(timed[0]['seconds'])})"
    if len(timed) > 1 and not is_padding:
        head += f", {ratio(timed[1]['seconds'] / timed[0]['seconds'])} to the next"
    width = max((len(each["name"]) for each in ordered), default=0)
    rows = [f"  {each['name']:{width}}  {_seconds(each, timed)}  {_about(each)}".rstrip() for each in ordered]
    errors = [f"  logged: {text}" for text in one["errors"]]
    return "\n".join([head, *(rows if timed or not is_padding else []), *errors, ""])


def _untimed_text(one: dict[str, Any]) -> str:
    """The choices of a device that is not here, in the order in which ``--config`` counts them."""
    place = f" at {one['file']}:{one['line']}" if one["file"] else ""
    head = f"{one['operator']}({', '.join(one['inputs'])}){place}: {count(len(one['choices']), 'choice')}, not timed"
    estimates = ["" if each is None else f"~{duration(each)}" for each in one["estimates"]]
    options = [each["description"].split(", ") for each in one["choices"] if each["description"]]
    shared = set(options[0]).intersection(*options[1:]) if len(options) > 1 else set()
    width = max(len(each["name"]) for each in one["choices"])
    rows = [
        f"  {number:>3}  {each['name']:{width}}  {estimate:>9}  "
        + ", ".join(part for part in _about(each).split(", ") if part not in shared)
        for number, (each, estimate) in enumerate(zip(one["choices"], estimates, strict=True), 1)
    ]
    return "\n".join([f"{head}; number {one['chosen'] + 1} is taken: {one['why']}", *rows, ""])


def _seconds(each: dict[str, Any], timed: Sequence[dict[str, Any]]) -> str:
    if not each["seconds"]:
        return f"{'failed':>16}"
    return f"{duration(each['seconds']):>8} {ratio(each['seconds'] / timed[0]['seconds']):>7}"


def _about(each: dict[str, Any]) -> str:
    return str(each["why_not"] or ("library" if each["kind"] == "library" else each["description"]))
