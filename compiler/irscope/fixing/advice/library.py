"""A break inside of a library: its place is the user's call, but the line that broke is the library's.

The words are those for the library's own line.  Only options that need no change of the library remain.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from irscope.events.stack import cause_among
from irscope.fixing.advice.families import name_at
from irscope.fixing.advice.model import Advice, BreakContext, Option
from irscope.fixing.advice.spot import Spot
from irscope.usercode.source import node_at_range
from irscope.usercode.user_files import is_package_file, is_torch_file, is_user_file

_KNOWN_CALLS = {
    "GB0007 GB0008 GB0009 GB0147 GB0156 GB4841 GB0291": ("",),
    "GB0208": ("copy.copy",),
    "GB4198 GB0179": ("copy.", "dataclasses."),
    "GB0264 GB0228": ("torch.nn.",),
    "GB0149 GB0067 GB4413": ("torch.",),
}
"""Ids of which a rule knows functions of Python or torch that break inside, by the beginning of their full names: the
user's call says enough."""
_KNOWN_METHODS = {"GB0467": "hook", "GB0125": "requires_grad_"}
"""The same for methods of modules, by a part of their names."""


def is_for_library(spot: Spot) -> bool:
    """Whether the user's line does not show the cause, so that no rule may read it as if it did."""
    context = spot.context
    if not context.beneath or (context.refused is not None and is_user_file(context.refused.co_filename)):
        return False  # or a library calls a function of the user's
    if not context.traced or any(is_package_file(place.file) for place in context.beneath):
        return True
    if (method := _KNOWN_METHODS.get(spot.cause.code)) is not None:
        return spot.call is None or method not in getattr(spot.call.func, "attr", "")
    code = spot.cause.code
    return not any(code in codes.split() and name_at(spot).startswith(known) for codes, known in _KNOWN_CALLS.items())


def advice_in_library(spot: Spot, advise: Callable[[Spot], Advice]) -> Advice:
    """What the rules say of the library's line, and what the user can do without a change of it."""
    context = spot.context
    at = cause_among(context.beneath)
    place, beneath = context.beneath[at], context.beneath[at + 1 :]
    node, inlined = node_at_range(place.file, place.range), context.inlined or context.traced or at > 0
    cause = BreakContext(
        context.messages, place.file, place.function, place.range, node, context.payload, context.skipped, beneath,
        inlined=inlined, refused=context.refused,
    )  # fmt: skip
    told = advise(Spot(cause, home=spot))
    where = f"{os.path.basename(place.file)}, line {place.range.start.line}"
    what = f"{spot.short(spot.expression or spot.statement)} runs code of a library, and there {told.what} ({where})"
    options = tuple(option for option in told.options if option.anywhere)
    do = "Call it outside of the compiled code" if context.traced else "Compile a function without that line"
    if not is_torch_file(place.file):  # PyTorch's own breaks are meant, as those of its optimizers
        do += ", or change that line of the library"
    return Advice(what, told.why, (*options, Option(do)))
