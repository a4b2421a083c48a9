"""What ``max-autotune`` tried for each operator of a graph.

The data of the stage ``autotuning`` is ``{"operators": […]}``, each with

===========  ===========================================================================================================
``operator`` ``mm``, ``addmm``, ``convolution``, …
``node``     the graph's node
``file``     and ``line``: the user's line; empty and 0 if it is not known
``inputs``   ``float32[64, 128]`` of each input
``choices``  the fastest first: ``name``, ``kind`` (``template`` or ``library``), ``description`` (the configuration),
             ``seconds`` (null if it failed), ``why_not`` (the first line of what was logged, where it is known)
``errors``   what was logged, where it is not known which choice it is about
===========  ===========================================================================================================
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from irscope.internals.autotuning_hooks import Choice, Tuned
from irscope.usercode.user_files import is_user_file
from irscope.vocabulary.units import count, duration, ratio
from irscope.vocabulary.visible import bounded

_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')
_MOST_CHOICES, _MOST_ERRORS = 500, 20


def operator_data(tuned: Tuned) -> dict[str, Any]:
    """What is kept of an operator, as plain JSON values."""
    frames = [(match["file"], int(match["line"])) for match in _FRAME.finditer(tuned.stack)]
    mine = [frame for frame in frames if is_user_file(frame[0])] or frames
    file, line = mine[-1] if mine else ("", 0)
    failed = [one for one in tuned.choices if one.seconds is None]
    reasons = [bounded(text.strip().split("\n")[0], 300) for text in tuned.errors[:_MOST_CHOICES]]
    each = dict(zip(map(id, failed), reasons, strict=True)) if len(reasons) == len(failed) else {}
    ordered = sorted(tuned.choices, key=lambda one: (one.seconds is None, one.seconds or 0.0))[:_MOST_CHOICES]
    return {
        "operator": tuned.operator, "node": tuned.node, "file": file, "line": line, "inputs": list(tuned.inputs),
        "choices": [_choice_data(one, each.get(id(one), "")) for one in ordered],
        "errors": [] if each else reasons[:_MOST_ERRORS],
    }  # fmt: skip


def _choice_data(one: Choice, why_not: str) -> dict[str, Any]:
    kind = "library" if "Extern" in one.kind else "template"
    description = bounded(one.description, 1000)
    return {"name": one.name, "kind": kind, "description": description, "seconds": one.seconds, "why_not": why_not}


def stage_text(operators: Sequence[dict[str, Any]]) -> str:
    """The operators one below the other, each with its choices, the fastest first."""
    return "\n".join(_operator_text(one) for one in operators)


def _operator_text(one: dict[str, Any]) -> str:
    choices = one["choices"]
    timed = [each for each in choices if each["seconds"]]
    place = f" at {one['file']}:{one['line']}" if one["file"] else ""
    head = f"{one['operator']}({', '.join(one['inputs'])}){place}: {count(len(choices), 'choice')}"
    if timed:
        head += f", fastest {timed[0]['name']} ({duration(timed[0]['seconds'])})"
    if len(timed) > 1:
        head += f", {ratio(timed[1]['seconds'] / timed[0]['seconds'])} to the next"
    width = max((len(each["name"]) for each in choices), default=0)
    rows = [f"  {each['name']:{width}}  {_seconds(each, timed)}  {_about(each)}".rstrip() for each in choices]
    errors = [f"  logged: {text}" for text in one["errors"]]
    return "\n".join([head, *rows, *errors, ""])


def _seconds(each: dict[str, Any], timed: Sequence[dict[str, Any]]) -> str:
    if not each["seconds"]:
        return f"{'failed':>16}"
    return f"{duration(each['seconds']):>8} {ratio(each['seconds'] / timed[0]['seconds']):>7}"


def _about(each: dict[str, Any]) -> str:
    return each["why_not"] or ("library" if each["kind"] == "library" else each["description"])
