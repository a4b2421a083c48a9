"""Printing, logging, warnings: effects that a graph cannot have."""

from __future__ import annotations

import ast
import re

from irscope.fixing.advice.common import guard, setting, some
from irscope.fixing.advice.model import Advice, Option
from irscope.fixing.advice.spot import Spot

_TYPES = re.compile(r"argument types \[(?P<types>.*?)\] \(has_kwargs (?P<kwargs>\w+)\)")
_REORDERABLE = {"str", "Tensor", "int", "float", "bool", "NoneType"}
_LATER = "It is then done after the graph, at the end of the compiled code."
_SILENT = "Compiled runs are then silent."


def print_call(spot: Spot) -> Advice:
    """Advice for output in compiled code: print later, leave it out, or print afterwards."""
    call = spot.call
    what = f"{spot.short(call)} writes while tracing" if call is not None else "something is printed while tracing"
    why = "A graph holds operations on tensors; it cannot write in the middle."
    later = setting(
        spot, "reorderable_logging_functions.add(print)", _LATER, "Let compiled code print when its graph has run"
    )
    return Advice(what, why, some(later if _reorderable(spot) else None, _leave_out(spot), _after(spot)))


def _reorderable(spot: Spot) -> bool:
    """Dynamo can put off a call with tensors, constants and formatted strings, and loses its keyword arguments."""
    match = _TYPES.search(spot.cause.explanation)
    if spot.context.inlined:  # there the setting makes PyTorch 2.13 lose the output
        return False
    if match is None or match["kwargs"] == "True" or (spot.call is not None and spot.call.keywords):
        return False
    return {t.strip(" '\"") for t in match["types"].split(",") if t.strip()} <= _REORDERABLE


def _leave_out(spot: Spot) -> Option | None:
    return guard(spot, _SILENT)


def _after(spot: Spot) -> Option | None:
    """Where the text is made of local tensors only: return them and print outside."""
    call = spot.call
    if call is None or not spot.functions or spot.context.inlined:
        return None
    return Option("Return what it shows and print it in the caller")


def logger_call(spot: Spot) -> Advice:
    """A method of a ``logging.Logger``."""
    call = spot.call
    what = f"{spot.short(call)} logs while tracing"
    why = "A graph holds operations on tensors; it cannot call a logger in the middle."
    return Advice(what, why, some(_ignored(spot, call), _leave_out(spot), _after(spot)))


def _ignored(spot: Spot, call: ast.Call | None) -> Option | None:
    if call is None or not isinstance(call.func, ast.Attribute):
        return None
    do = "Let compiled code skip it"
    if spot.hoistable(call.func):
        return _named(spot, f"ignore_logging_functions.add({spot.text(call.func)})", _SILENT, do)
    logging = spot.home.source.module_name("logging") or "logging"
    name = f"ignore_logging_functions.add({logging}.Logger.{call.func.attr})"
    return setting(spot, name, f"{_SILENT} It holds for all loggers.", do, needs=("logging",))


def _named(spot: Spot, name: str, caveat: str, do: str) -> Option:
    """A setting that names a function of the file: it must come after that name is bound."""
    torch, imports = spot.need("torch")
    code = f"{torch}._dynamo.config.{name}"
    return Option(f"{do}, once above the function", code, caveat, (*imports, spot.above(code)))


def root_logging(spot: Spot) -> Advice:
    """``logging.info(…)``, the function of the module."""
    call = spot.call
    name = spot.qualified(call.func) if call is not None else ""
    if not name.startswith("logging."):
        return Advice(f"Dynamo cannot trace {spot.short(spot.expression)}", spot.cause.explanation)
    return logger_call(spot)


def warning(spot: Spot) -> Advice:
    """``warnings.warn(…)``."""
    call = spot.call
    what = f"{spot.short(call)} warns while tracing"
    why = "A warning looks at the Python stack and at filters, which a graph does not have."
    name = spot.text(call.func) if call is not None else "warnings.warn"
    plain = call is not None and len(call.args) == 1 and not call.keywords and not spot.context.inlined
    put_off = f"reorderable_logging_functions.add({name})"
    ignored = f"ignore_logging_functions.add({name})"
    first = (
        _named(spot, put_off, _LATER, "Let compiled code warn when its graph has run")
        if plain
        else _named(spot, ignored, _SILENT, "Let compiled code skip it")
    )
    return Advice(what, why, some(first if call is not None and spot.hoistable(call.func) else None, _leave_out(spot)))


def not_reorderable(spot: Spot) -> Advice:
    """A call that the settings put off, with arguments that cannot be."""
    what = f"{spot.short(spot.call)} was to run after the graph, but not with these arguments"
    why = "Only tensors, constants and formatted strings can wait until then."
    option = None
    if spot.call is not None and spot.call.args and not spot.call.keywords and not spot.context.inlined:
        texts = [_formatted(spot, arg) for arg in spot.call.args]
        code = f"{spot.text(spot.call.func)}({', '.join(texts)})"
        option = Option("Convert the others to strings", code, "", (spot.replace(spot.call, code),))
    return Advice(what, why, some(option, _leave_out(spot)))


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
    if call is None or len(call.args) != 1 or spot.qualified(call.func) not in ("str", "repr", "format"):
        return Advice(what, why, some(_leave_out(spot)))
    shape = Option(
        "Use what is known while tracing", f"str({spot.tight(call.args[0])}.shape)", "Shape, dtype and device are."
    )
    return Advice(what, why, some(_leave_out(spot), shape, _after(spot)), call.args[0])
