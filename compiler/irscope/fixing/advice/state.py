"""Objects that compiled code copies, makes or changes: copies, classes, modules, hooks, attributes."""

from __future__ import annotations

import ast
import re
from typing import TypeGuard

from irscope.fixing.advice.common import around, hoist, pass_in, replacing, setting, some
from irscope.fixing.advice.model import Advice, Option
from irscope.fixing.advice.spot import Spot
from irscope.fixing.source import bound_names, loaded_names
from irscope.protocol import FixMethod
from irscope.usercode.bindings import last_word

_COPY_FRAME = re.compile(r'^  File "[^"]*[/\\]copy\.py", line \d+, in (?P<name>\S+)$', re.MULTILINE)


def deepcopy(spot: Spot) -> Advice:
    """``copy.deepcopy`` of a tensor, or of something that holds tensors."""
    call, shown = spot.call, spot.short(spot.expression)
    why = "`copy.deepcopy` works on the memory of a tensor, which does not exist while a graph is traced."
    if call is None or not call.args or isinstance(call.args[0], ast.Starred):
        return Advice(f"{shown} copies a tensor as a Python object", why)
    name, argument, text = spot.source.full_name(call.func), call.args[0], spot.text(call.args[0])
    options: tuple[Option, ...]
    frames = [match["name"] for match in _COPY_FRAME.finditer(spot.context.payload)]
    if name in ("dataclasses.asdict", "dataclasses.astuple"):
        code = f"dict(vars({text}))" if name == "dataclasses.asdict" else f"tuple(vars({text}).values())"
        caveat = "The tensors are then not copied, and dataclasses inside stay as they are."
        what, options = "the tensors in the dataclass", (replacing(spot, call, code, "Read the fields", caveat),)
    elif set(frames) == {"deepcopy"}:
        code, caveat = f"{spot.tight(argument)}.detach().clone()", "A leaf that requires grad is a plain tensor then."
        what, options = "a tensor as a Python object", (replacing(spot, call, code, "Clone it", caveat),)
    elif "_deepcopy_list" in frames and frames.count("deepcopy") == 2:
        code = f"[item.detach().clone() for item in {text}]"
        what, options = "the tensors in the list", (replacing(spot, call, code, FixMethod.CLONE_TENSORS),)
    else:
        once = hoist(spot, call, "The copy is then made once, not in every call.")
        what, options = "an object that holds tensors", some(once, pass_in(spot, call, ""))
    return Advice(f"{shown} copies {what}", why, options, argument)


def class_made(spot: Spot) -> Advice:
    """A ``class`` statement in compiled code."""
    node, do = spot.statement, "Define it above the function"
    why = "Making a class runs code in C that Dynamo does not trace."
    option = Option(f"{do}, and pass in what it uses from here")
    if not isinstance(node, ast.ClassDef):
        return Advice("a class is defined while tracing", why, (option,))
    if not set(loaded_names(node)) & (spot.local_names() - bound_names(node)):
        text = spot.source.code(node)
        code = text.split("\n")[0] + "   # at the top level of the file"
        edits = spot.edits({node: "pass"}, above=text)
        option = Option(do, code, "It is then one class, not a new one in every call.", edits)
    return Advice(f"`class {node.name}` is defined while tracing", why, (option,))


def parameter_made(spot: Spot) -> Advice:
    """``nn.Parameter(…)`` or a module with parameters made in compiled code."""
    call = spot.call
    what = f"{spot.short(call)} makes a parameter while tracing"
    why = "A parameter must exist before the graph: it is an input of the graph, and gradients are gathered in it."
    # The setting only moves the break in a module that the compiled code makes, and in an operator's body.
    function = spot.source.function(call) if call is not None else None
    parent = spot.source.parent(function)
    owner = parent if isinstance(parent, ast.ClassDef) else None
    if owner is not None and function is not None and function.name == "__init__":
        return Advice(what, why, (Option(f"Make the `{owner.name}` outside of the compiled code, and pass it in"),))
    if "Higher Order Operator:" in spot.context.payload:
        return Advice(what, why, (Option("Make it outside of the compiled code, and pass it in"),))
    hoisted = hoist(spot, call, "It is then one parameter, which keeps its values from call to call.")
    made = _in_init(spot, owner, call) if owner is not None and call is not None else None
    if call is None or not spot.source.full_name(call.func).endswith("nn.Parameter"):
        return Advice(what, why, some(made or hoisted))
    do, caveat = "Let Dynamo make it an input of the graph", "It is created again in every call."
    allow = setting(spot, "graph_break_on_nn_param_ctor = False", caveat, do)
    return Advice(what, why, some(made, allow, hoisted))


def _in_init(spot: Spot, owner: ast.ClassDef, call: ast.Call) -> Option | None:
    """In a module's ``forward``: make it in ``__init__``."""
    statement = spot.statement
    init = next((s for s in owner.body if isinstance(s, ast.FunctionDef) and s.name == "__init__"), None)
    used = {name.id for name in spot.source.all(ast.Name, call)}
    if not isinstance(statement, ast.Assign) or init is None or used & (spot.local_names() - {"self"}):
        return None
    attribute = f"self.{last_word(statement.targets[0]) or 'made'}"
    line, last = f"{attribute} = {spot.text(call)}", init.body[-1]
    is_kept = isinstance(statement.targets[0], ast.Attribute)
    changes: dict[ast.AST, str | None] = {statement: "pass"} if is_kept else {call: attribute}
    changes[last] = f"{spot.source.code(last)}\n{line}"
    return Option("Make it in `__init__`", line, "It then keeps its values from call to call.", spot.edits(changes))


def handle_from_elsewhere(spot: Spot) -> Advice:
    """The handle of a hook, used in another graph than the one in which the hook was registered."""
    what = f"{spot.short(spot.expression)} uses the handle of a hook that was registered before this graph"
    register = _registration(spot)
    inside = register is not None and bool(spot.functions) and spot.functions[-1] in spot.source.around(register)
    where = "above a graph break" if inside else "outside of the compiled code"
    why = f"Such a handle is Python state outside of the graph; the code that made it ran {where}."
    between = Option("Or fix the graph break between the two, so that both are in one graph") if inside else None
    return Advice(what, why, some(_registered(spot, "Register and remove it in the caller", register), between))


def _registered(spot: Spot, do: str, call: ast.Call | None) -> Option:
    code = spot.text(call) if call is not None else "module.register_forward_hook(hook)"
    return around(spot, do, f"handle = {code}", "", "handle.remove()")


def _registration(spot: Spot) -> ast.Call | None:
    """The call that made the handle at hand: in the file, ``h = x.register_hook(…)`` for ``h.remove()``."""
    names = set(loaded_names(spot.expression)) if spot.expression is not None else set()
    assigns = [assign for assign in spot.source.all(ast.Assign) if bound_names(assign) & names]
    return next((assign.value for assign in assigns if _registers(assign.value)), None)


def _registers(node: ast.AST | None) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and "register" in last_word(node.func)


def class_attribute_set(spot: Spot) -> Advice:
    """Setting an attribute that Dynamo does not track; ``module.register_forward_hook(…)`` and its handle."""
    statement = spot.statement
    if spot.call is not None and "hook" in last_word(spot.call.func):
        what = f"{spot.short(spot.call)} changes the hooks of a module while tracing"
        why = "Hooks are Python state outside of the graph; the handle that comes back cannot be put into it."
        call = spot.call if _registers(spot.call) else None
        return Advice(what, why, (_registered(spot, "Register it in the caller", call),))
    is_assign = isinstance(statement, (ast.Assign, ast.AugAssign))
    what = f"{spot.short(statement if is_assign else spot.expression)} sets an attribute of something that Dynamo does not track"
    before = ""
    if isinstance(statement, (ast.Assign, ast.AugAssign, ast.Expr)):
        before = "" if set(loaded_names(statement)) & spot.local_names() else spot.text(statement)
    return Advice(what, spot.cause.explanation, (around(spot, "Do it in the caller", before),))


def not_rebuilt(spot: Spot) -> Advice:
    """An object that lives across a break, and that Dynamo cannot make again after it."""
    said = re.sub(r"sourceless variable (\w+)\(.*", r"a `\1`.", spot.cause.explanation).strip()
    if isinstance(spot.node, ast.Return):
        what = f"{spot.short(spot.node)} returns an object that compiled code cannot hand out"
        why = f"{said} It was made while tracing, and Dynamo has no code that makes it again after the graph."
        return Advice(what, why, (Option("Return the tensors only, and make that object in the caller"),))
    shown = spot.short(spot.expression or spot.statement)
    what = f"an object that is alive at {shown} cannot be carried over a graph break"
    why = (
        f"{said} A graph break during its lifetime causes this one. "
        "Fix that break, which is reported at the same line or nearby, and this one disappears too."
    )
    return Advice(what, why, (Option("Fix that other break first"),))
