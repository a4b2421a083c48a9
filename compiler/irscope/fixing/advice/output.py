"""Printing, logging, warnings: effects that a graph cannot have."""

from __future__ import annotations

import ast
import re

from irscope.fixing.advice.common import guard, replacing, setting, some
from irscope.fixing.advice.model import Advice, Option
from irscope.fixing.advice.spot import Spot

_TYPES = re.compile(r"argument types \[(?P<types>.*?)\] \(has_kwargs (?P<kwargs>\w+)\)")
_REORDERABLE = {"str", "Tensor", "int", "float", "bool", "NoneType"}
_LATER = "It is then done after the graph, at the end of the compiled code."
_SILENT = "Compiled runs are then silent."
_SKIP = "Let compiled code skip it"


def print_call(spot: Spot) -> Advice:
    """Advice for output in compiled code: print later, leave it out, or print afterwards."""
    call = spot.call
    what = f"{spot.short(call)} writes while tracing" if call is not None else "something is printed while tracing"
    why = "A graph holds operations on tensors; it cannot write in the middle."
    name, do = "reorderable_logging_functions.add(print)", "Let compiled code print when its graph has run"
    later = setting(spot, name, _LATER, do) if _reorderable(spot) else None
    return Advice(what, why, some(later, guard(spot, _SILENT), _after(spot)))


def _reorderable(spot: Spot) -> bool:
    """Dynamo can put off a call with tensors, constants and formatted strings, and loses its keyword arguments."""
    match = _TYPES.search(spot.cause.explanation)
    if spot.context.inlined:  # there the setting makes PyTorch 2.13 lose the output
        return False
    if match is None or match["kwargs"] == "True" or (spot.call is not None and spot.call.keywords):
        return False
    return {t.strip(" '\"") for t in match["types"].split(",") if t.strip()} <= _REORDERABLE


def _after(spot: Spot) -> Option | None:
    is_local = spot.call is not None and spot.functions and not spot.context.inlined
    return Option("Return what it shows and print it in the caller") if is_local else None


def logger_call(spot: Spot) -> Advice:
    """A method of a ``logging.Logger``, or ``logging.info(…)``, the function of the module."""
    what = f"{spot.short(spot.call)} logs while tracing"
    why = "A graph holds operations on tensors; it cannot call a logger in the middle."
    return Advice(what, why, some(_ignored(spot), guard(spot, _SILENT), _after(spot)))


def _ignored(spot: Spot) -> Option | None:
    if spot.call is None or not isinstance(spot.call.func, ast.Attribute):
        return None
    if (named := _named(spot, "ignore", _SILENT, _SKIP)) is not None:
        return named
    logging = spot.home.source.module_name("logging") or "logging"
    name = f"ignore_logging_functions.add({logging}.Logger.{spot.call.func.attr})"
    return setting(spot, name, f"{_SILENT} It holds for all loggers.", _SKIP, "logging")


def _named(spot: Spot, which: str, caveat: str, do: str) -> Option | None:
    """A setting that names a function of the file, after that name is bound; None if it is not bound above."""
    if spot.call is None or not spot.hoistable(spot.call.func):
        return None
    code = f"{spot.torch}._dynamo.config.{which}_logging_functions.add({spot.text(spot.call.func)})"
    return Option(f"{do}, once above the function", code, caveat, spot.edits({}, above=code))


def warning(spot: Spot) -> Advice:
    """``warnings.warn(…)``."""
    call = spot.call
    what = f"{spot.short(call)} warns while tracing"
    why = "A warning looks at the Python stack and at filters, which a graph does not have."
    if call is not None and len(call.args) == 1 and not call.keywords and not spot.context.inlined:
        named = _named(spot, "reorderable", _LATER, "Let compiled code warn when its graph has run")
    else:
        named = _named(spot, "ignore", _SILENT, _SKIP)
    return Advice(what, why, some(named, guard(spot, _SILENT)))


def not_reorderable(spot: Spot) -> Advice:
    """A call that the settings put off, with arguments that cannot be."""
    what = f"{spot.short(spot.call)} was to run after the graph, but not with these arguments"
    why = "Only tensors, constants and formatted strings can wait until then."
    option = None
    if spot.call is not None and spot.call.args and not spot.call.keywords and not spot.context.inlined:
        texts = ", ".join(_formatted(spot, arg) for arg in spot.call.args)
        code = f"{spot.text(spot.call.func)}({texts})"
        option = replacing(spot, spot.call, code, "Convert the others to strings")
    return Advice(what, why, some(option, guard(spot, _SILENT)))


def _formatted(spot: Spot, node: ast.expr) -> str:
    if isinstance(node, (ast.Constant, ast.JoinedStr)):
        return spot.text(node)
    quote = "'" if '"' in spot.text(node) else '"'
    return f"f{quote}{{{spot.text(node)}}}{quote}"


def text_of_tensor(spot: Spot) -> Advice:
    """``str(x)`` and ``repr(x)``."""
    call = spot.call
    what = f"{spot.short(call or spot.expression)} needs the values of a tensor while tracing"
    why = "The text of a tensor shows its values, which it does not have while a graph is traced."
    if call is None and isinstance(spot.expression, (ast.JoinedStr, ast.FormattedValue)):
        return Advice(what, why, (Option("Print what is known while tracing", 'f"{x.shape}"'),))
    if call is None or len(call.args) != 1 or spot.called not in ("str", "repr", "format"):
        return Advice(what, why, some(guard(spot, _SILENT)))
    code = f"str({spot.tight(call.args[0])}.shape)"
    shape = Option("Use what is known while tracing", code, "Shape, dtype and device are.")
    return Advice(what, why, some(guard(spot, _SILENT), shape, _after(spot)), call.args[0])
