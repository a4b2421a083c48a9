"""A tensor's value is asked for as a Python number, list or text."""

from __future__ import annotations

import ast
import re

from irscope.fixing.advice import randomness
from irscope.fixing.advice.branches import branch_options
from irscope.fixing.advice.common import guard, pass_in, replacing, setting, some
from irscope.fixing.advice.conditions import decision_at, decision_later, uses_of_value
from irscope.fixing.advice.model import Advice, Option
from irscope.fixing.advice.spot import Spot
from irscope.fixing.conditions import condition_of, tensor_of
from irscope.fixing.source import bound_names

_WHY = "While a graph is traced, tensors have shapes but no values, and a Python number must have one."
_KEEP, _KEEP_ELEMENTS = "Keep it a tensor", "Keep the elements tensors"
_KEEP_CAVEAT = "It is then a tensor, not a Python number: take `.item()` of it outside of compiled code."
_ELEMENTS = "For a tensor with one dimension; the elements are tensors, not Python numbers."
_TENSOR = "The result is a tensor."
_SCALARS = "capture_scalar_outputs = True"
_SCALARS_CAVEAT = "An `if` or an index by the number may then fail, and other functions be compiled more often."
_RANGE_CAVEAT = "It is compiled once for each number, and other functions may then fail with a data-dependent guard."
_NUMBER = {"int": ".long()", "bool": ".bool()"}
_MATH = {"sqrt", "exp", "log", "log2", "log10", "log1p", "expm1", "sin", "cos", "tan", "tanh", "sinh", "cosh", "floor",
         "ceil", "trunc", "erf", "isnan", "isinf", "isfinite", "atan", "asin", "acos", "atan2", "pow", "fabs"}  # fmt: skip


def scalar(spot: Spot) -> Advice:
    """``.item()`` and what calls it: ``float(x)``, an index, a slice."""
    node, decision = spot.expression, decision_at(spot)
    what = f"{spot.short(node)} needs the value of a tensor while tracing"
    if decision is not None and not isinstance(decision, ast.While) and (options := branch_options(spot, decision)):
        return Advice(what, _WHY, options, decision.test)
    kind = spot.called if spot.called in ("int", "bool") else "float"
    tensor = tensor_of(spot.source, node, kind) if node is not None else None
    if tensor is None or node is None:
        return _in_slice_or_index(spot, what)
    keep = replacing(spot, node, f"{spot.tight(tensor)}.detach(){_NUMBER.get(kind, '')}", _KEEP, _KEEP_CAVEAT)
    uses, capture = uses_of_value(spot), _as_symbol(spot)
    if "decision" in uses:
        options = (_decide_by_tensor(spot, keep),)
    elif "range" in uses:
        unrolled = setting(spot, _SCALARS, _RANGE_CAVEAT, "Let the loop run to a number of the graph")
        options = some(pass_in(spot, node, "The function is compiled again for each number."), unrolled)
    elif uses & {"index", "argument"}:
        options = some(capture)
    elif uses == {"text"}:
        options = some(guard(spot, "Then it is not done in compiled runs."), capture)
    else:
        options = some(keep, capture)
    return Advice(what, _WHY, options, tensor)


def _as_symbol(spot: Spot) -> Option:
    return setting(spot, _SCALARS, _SCALARS_CAVEAT, "Let the number be a symbol of the graph")


def _decide_by_tensor(spot: Spot, keep: Option) -> Option:
    """A number that an ``if`` uses later: no setting helps, the decision itself has to go."""
    later = decision_later(spot).strip()
    do = "Keep it a tensor, and write what depends on it with torch.where or torch.cond"
    code = f"{keep.code}\n{later}   # this line will be the next break" if later else keep.code
    return Option(do, code, "`capture_scalar_outputs` does not help here: Python still has to decide.")


def _in_slice_or_index(spot: Spot, what: str) -> Advice:
    """``y[:n]`` and ``numbers[n]``, where ``n`` is a tensor, and calls that ask for a value by themselves."""
    node, call, capture = spot.node, spot.call, _as_symbol(spot)
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        option, name = element_of_tensor(spot, node), node.value.id
        lists = [a.value for a in spot.source.all(ast.Assign, spot.functions) if name in bound_names(a)]
        if not any(map(are_numbers, lists)):
            caveat = f"If `{name}` holds numbers; `torch.stack` if it holds tensors."
            option = Option(option.do, option.code, caveat)
        return Advice(what, _WHY, (option,), node.slice)
    if call is not None and (values := _mapped(call)) is not None:
        option = replacing(spot, call, f"list({spot.tight(values)}.unbind())", _KEEP_ELEMENTS, _ELEMENTS)
        return Advice(what, _WHY, (option, capture), values)
    return Advice(what, _WHY, (capture,), spot.expression)


def _mapped(call: ast.Call) -> ast.expr | None:
    """The tensor of ``map(float, x)`` or ``list(map(float, x))``."""
    match call:
        case ast.Call(func=ast.Name(id="list" | "tuple"), args=[ast.Call() as mapped]):
            return _mapped(mapped)
        case ast.Call(func=ast.Name(id="map"), args=[ast.Name(id="float" | "int" | "bool"), values]):
            return values
    return None


def element_of_tensor(spot: Spot, node: ast.Subscript) -> Option:
    """``numbers[n]`` for a list of numbers as an element of a tensor."""
    made = "stack" if isinstance(spot.source.parent(node), ast.Attribute) else "tensor"  # it has attributes of a tensor
    code = f"{spot.torch}.{made}({spot.text(node.value)})[{spot.text(node.slice)}]"
    return replacing(spot, node, code, "Index a tensor instead of a list", _TENSOR if made == "tensor" else "")


def are_numbers(node: ast.expr) -> bool:
    """Whether an expression is a list or tuple of numbers."""
    if not isinstance(node, (ast.List, ast.Tuple)):
        return False
    return all(isinstance(item, ast.Constant) and isinstance(item.value, (int, float)) for item in node.elts)


# --- lists, math, comparisons -----------------------------------------------------------------------------------------


def tolist(spot: Spot) -> Advice:
    """``.tolist()`` of a tensor that does not hold integers."""
    call = spot.call
    what = f"{spot.short(call)} needs the values of a tensor while tracing"
    why = "Dynamo can trace `.tolist()` of integers only, and only with `capture_scalar_outputs`."
    if call is None or not isinstance(call.func, ast.Attribute):
        return Advice(what, why)
    tensor = call.func.value
    if _is_scalar(tensor):
        option = replacing(spot, call, f"{spot.tight(tensor)}.detach()", _KEEP, _TENSOR)
        return Advice(what, why, (option,), tensor)
    code = f"list({spot.tight(tensor).removesuffix('.numpy()')}.detach().unbind())"
    return Advice(what, why, (replacing(spot, call, code, _KEEP_ELEMENTS, _ELEMENTS),), tensor)


def _is_scalar(tensor: ast.expr) -> bool:
    """Whether a tensor has no dimensions for sure: it is a reduction over all of them."""
    match tensor:
        case ast.Call(func=ast.Attribute(attr=word), args=[], keywords=[]):
            return word in ("sum", "mean", "prod", "max", "min", "argmax", "argmin", "any", "all", "std", "var")
    return False


def data_dependent_operator(spot: Spot) -> Advice:
    """An operator whose result is a Python value: ``torch.equal``, ``math.sqrt`` of a tensor, an array's element."""
    decision, call, node, name = decision_at(spot), spot.call, spot.expression, spot.called
    what = f"{spot.short(node)} gives a Python value that depends on the values of a tensor"
    if name.startswith("numpy.random."):
        return randomness.number_drawn(spot)
    if call is not None and name in ("torch.equal", "torch.allclose"):
        if decision is not None and (options := branch_options(spot, decision)):
            return Advice(what, _WHY, options, decision.test)
        if (text := condition_of(spot.source, call)) is not None:
            caveat = "The result is a tensor: an `if` on it breaks again."
            return Advice(what, _WHY, (replacing(spot, call, text, "Keep the answer a tensor", caveat),), call)
    if call is not None and call.args and name.startswith("math.") and (option := _with_torch(spot, call)) is not None:
        return Advice(what, _WHY, (option,), call.args[0])
    return Advice(what, _WHY, (_percent_format(spot, node) or _as_symbol(spot),), node)


def _percent_format(spot: Spot, node: ast.expr | None) -> Option | None:
    """``"%.2f" % x`` as an f-string, which can wait until the graph has run."""
    match node:
        case ast.BinOp(left=ast.Constant(value=str(pattern)), op=ast.Mod(), right=right) if not (
            isinstance(right, (ast.Tuple, ast.Dict)) or '"' in spot.text(right)
        ):
            field = re.fullmatch(r"([^%{}\"\\\n]*)%([0 +]?\d*(?:\.\d+)?[feg])([^%{}\"\\\n]*)", pattern)
            if field is not None:
                code = f'f"{field[1]}{{{spot.text(right)}:{field[2]}}}{field[3]}"'
                return replacing(spot, node, code, "Use an f-string", "The text is then made when the graph has run.")
    return None


def sort_by_tensors(spot: Spot) -> Advice:
    """Advice for sorting a list of tensors by their values."""
    call = spot.call
    what = f"{spot.short(call)} compares tensors by their values while tracing"
    do, caveat = "Sort inside of the graph", "For tensors of one shape without dimensions and of one dtype."
    match call:
        case (
            ast.Call(func=ast.Name(id="sorted"), args=[values, *_])
            | ast.Call(func=ast.Attribute(value=values, attr="sort"))
        ):
            keywords = {keyword.arg: spot.text(keyword.value) for keyword in call.keywords}
        case _:
            return Advice(what, _WHY)
    if "key" in keywords:
        return Advice(what, _WHY, (), values)
    reverse = keywords.get("reverse") == "True"
    text = spot.text(values)
    stacked = text if isinstance(values, (ast.List, ast.Tuple, ast.Name)) else f"list({text})"
    code = f"list({spot.torch}.stack({stacked}).sort({'descending=True' if reverse else ''}).values)"
    if isinstance(call.func, ast.Attribute):
        code = f"{text}[:] = {code}"
        if not spot.alone:
            return Advice(what, _WHY, (Option(do, code, caveat),), values)
    return Advice(what, _WHY, (replacing(spot, call, code, do, caveat),), values)


def python_function(spot: Spot) -> Advice:
    """``max(a, b, key=…)`` and other builtins that Dynamo has no rule for; ``round(x)``, which fake tensors lack."""
    call, what = spot.call, f"Dynamo has no rule for {spot.short(spot.expression)} with these arguments"
    if call is not None and call.args and (option := _with_torch(spot, call)) is not None:
        return Advice(what, _WHY, (option,), call.args[0])
    return Advice(what, spot.cause.explanation)


def _with_torch(spot: Spot, call: ast.Call) -> Option | None:
    """A function of torch in the place of one of Python or of ``math``; None if there is none."""
    do, caveat, given = "Use torch's function", _TENSOR, [*map(spot.text, call.args)]
    module, _, word = spot.called.rpartition(".")
    if module == "math" and word in _MATH:
        word = "abs" if word == "fabs" else word
    elif spot.called in ("max", "min") and len(given) == 2:
        word, do, caveat = f"{word}imum", "Compare inside of the graph", "For two tensors; a `key` is not applied."
    elif spot.called == "round":
        given[1:] = [f"decimals={digits}" for digits in given[1:]]
    else:
        return None
    return replacing(spot, call, f"{spot.torch}.{word}({', '.join(given)})", do, caveat)
