"""Objects that compiled code copies, makes or changes: copies, classes, modules, hooks, attributes."""

from __future__ import annotations

import ast
import re

from irscope.fixing.advice.common import around, hoist, last_word, pass_in, replacing, setting, some
from irscope.fixing.advice.model import Advice, Option
from irscope.fixing.advice.spot import Spot
from irscope.fixing.source import bound_names, loaded_names
from irscope.protocol import FixMethod

_COPY_FRAME = re.compile(r'^  File "[^"]*[/\\]copy\.py", line \d+, in (?P<name>\S+)$', re.MULTILINE)


def deepcopy(spot: Spot) -> Advice:
    """``copy.deepcopy`` of a tensor, or of something that holds tensors."""
    call = spot.call
    what = f"{spot.short(spot.expression)} copies a tensor as a Python object"
    why = "`copy.deepcopy` works on the memory of a tensor, which does not exist while a graph is traced."
    if call is None or not call.args:
        return Advice(what, why)
    name, argument = spot.qualified(call.func), call.args[0]
    if name in ("dataclasses.asdict", "dataclasses.astuple"):
        values = f"vars({spot.text(argument)})"
        short = f"dict({values})" if name == "dataclasses.asdict" else f"tuple({values}.values())"
        caveat = "The tensors are then not copied, and dataclasses inside stay as they are."
        return Advice(
            f"{spot.short(call)} copies the tensors in the dataclass", why,
            (replacing(spot, call, short, "Read the fields", caveat),),
        )  # fmt: skip
    frames = [match["name"] for match in _COPY_FRAME.finditer(spot.context.payload)]
    copied = f"{spot.tight(argument)}.detach().clone()"
    as_parameter = "It is a plain tensor then: a leaf that requires grad is not one any more."
    if frames and set(frames) == {"deepcopy"}:
        return Advice(what, why, (replacing(spot, call, copied, "Clone it", as_parameter),), argument)
    if frames and "_deepcopy_list" in frames and frames.count("deepcopy") == 2:
        code, clone = f"[item.detach().clone() for item in {spot.text(argument)}]", FixMethod.CLONE_TENSORS
        return Advice(
            f"{spot.short(call)} copies the tensors in the list", why,
            (replacing(spot, call, code, clone.title, method=clone),), argument,
        )  # fmt: skip
    return Advice(
        f"{spot.short(call)} copies an object that holds tensors", why,
        some(hoist(spot, call, "The copy is then made once, not in every call."), pass_in(spot, call, "")), argument,
    )  # fmt: skip


def class_made(spot: Spot) -> Advice:
    """A ``class`` statement in compiled code."""
    node = spot.statement
    name = f"`class {node.name}`" if isinstance(node, ast.ClassDef) else "a class"
    what = f"{name} is defined while tracing"
    why = "Making a class runs code in C that Dynamo does not trace."
    if isinstance(node, ast.ClassDef):
        if not set(loaded_names(node)) & (spot.local_names() - bound_names(node)):
            text = spot.block([node])
            first, *_ = text.split("\n")
            changes = (spot.above(text), spot.replace_statements([node], "pass"))
            do, caveat = "Define it above the function", "It is then one class, not a new one in every call."
            return Advice(what, why, (Option(do, f"{first}   # at the top level of the file", caveat, changes),))
    return Advice(what, why, (Option("Define it above the function, and pass in what it uses from here"),))


def parameter_made(spot: Spot) -> Advice:
    """``nn.Parameter(…)`` or a module with parameters made in compiled code."""
    call = spot.call
    what = f"{spot.short(call)} makes a parameter while tracing"
    why = "A parameter must exist before the graph: it is an input of the graph, and gradients are gathered in it."
    if (made_outside := _made_outside(spot)) is not None:
        return Advice(what, why, (made_outside,))
    hoisted = hoist(spot, call, "It is then one parameter, which keeps its values from call to call.")
    if call is None or not spot.qualified(call.func).endswith("nn.Parameter"):
        return Advice(what, why, some(_in_init(spot, call) or hoisted))
    allow = setting(
        spot,
        "graph_break_on_nn_param_ctor = False",
        "It is created again in every call.",
        "Let Dynamo make it an input of the graph",
    )
    return Advice(what, why, some(_in_init(spot, call), allow, hoisted))


def _made_outside(spot: Spot) -> Option | None:
    """Where the setting only moves the break: in a module that the compiled code makes, and in an operator's body."""
    name, owner = _method_at(spot)
    if owner is not None and name == "__init__":
        return Option(f"Make the `{owner.name}` outside of the compiled code, and pass it in")
    if "Higher Order Operator:" in spot.context.payload:
        return Option("Make it outside of the compiled code, and pass it in")
    return None


def _method_at(spot: Spot) -> tuple[str, ast.ClassDef | None]:
    """The name of the function at hand, and its class if it is a method."""
    function = next((function for function in spot.functions if isinstance(function, ast.FunctionDef)), None)
    owner = spot.parent(function) if function is not None else None
    return function.name if function is not None else "", owner if isinstance(owner, ast.ClassDef) else None


def _in_init(spot: Spot, call: ast.Call | None) -> Option | None:
    """In a module's ``forward``: make it in ``__init__``."""
    _, owner = _method_at(spot)
    if owner is None or call is None or not isinstance(statement := spot.statement, ast.Assign):
        return None
    target = statement.targets[0]
    name = last_word(target) or "made"
    init = next((s for s in owner.body if isinstance(s, ast.FunctionDef) and s.name == "__init__"), None)
    used = {n.id for n in ast.walk(call) if isinstance(n, ast.Name)}
    if init is None or used & (spot.local_names() - {"self"}):
        return None
    line = f"self.{name} = {spot.text(call)}"
    last = init.body[-1]
    changes = (
        spot.replace_statements([last], f"{spot.block([last])}\n{line}"),
        spot.replace_statements([statement], "pass")
        if isinstance(target, ast.Attribute)
        else spot.replace(call, f"self.{name}"),
    )
    return Option("Make it in `__init__`", line, "It then keeps its values from call to call.", changes)


def handle_from_elsewhere(spot: Spot) -> Advice:
    """The handle of a hook, used in another graph than the one in which the hook was registered."""
    what = f"{spot.short(spot.expression)} uses the handle of a hook that was registered before this graph"
    register = _registration(spot)
    inside = register is not None and bool(spot.functions) and spot.functions[-1] in spot.ancestors_of(register)
    where = "above a graph break" if inside else "outside of the compiled code"
    why = f"Such a handle is Python state outside of the graph; the code that made it ran {where}."
    code = spot.text(register) if register is not None else "module.register_forward_hook(hook)"
    caller = around(spot, "Register and remove it in the caller", f"handle = {code}", "", "handle.remove()")
    between = Option("Or fix the graph break between the two, so that both are in one graph") if inside else None
    return Advice(what, why, some(caller, between))


def _registration(spot: Spot) -> ast.Call | None:
    """The call that made the handle at hand: in the file, ``h = x.register_hook(…)`` for ``h.remove()``."""
    names = set(loaded_names(spot.expression)) if spot.expression is not None else set()
    for assign in spot.source.all(ast.Assign):
        call = assign.value if isinstance(assign.value, ast.Call) else None
        if call is not None and "register" in last_word(call.func) and bound_names(assign) & names:
            return call
    return None


def hook_registered(spot: Spot) -> Advice:
    """``module.register_forward_hook(…)`` and its handle."""
    what = f"{spot.short(spot.expression)} changes the hooks of a module while tracing"
    why = "Hooks are Python state outside of the graph; the handle that comes back cannot be put into it."
    call = spot.call
    registers = call is not None and "register" in last_word(call.func)
    before = f"handle = {spot.text(call) if call is not None and registers else 'module.register_forward_hook(hook)'}"
    return Advice(what, why, (around(spot, "Register it in the caller", before, "", "handle.remove()"),))


def class_attribute_set(spot: Spot) -> Advice:
    """Advice for setting an attribute that Dynamo does not track."""
    if spot.call is not None and "hook" in last_word(spot.call.func):
        return hook_registered(spot)
    statement = spot.statement
    plain = isinstance(statement, (ast.Assign, ast.AugAssign, ast.Expr))
    shown = statement if isinstance(statement, (ast.Assign, ast.AugAssign)) else spot.expression
    what = f"{spot.short(shown)} sets an attribute of something that Dynamo does not track"
    is_global = plain and statement is not None and not set(loaded_names(statement)) & spot.local_names()
    before = spot.text(statement) if is_global and statement is not None else ""
    return Advice(what, spot.cause.explanation, (around(spot, "Do it in the caller", before),))


def recurrent_module(spot: Spot) -> Advice:
    """Advice for an RNN, GRU or LSTM in compiled code."""
    what = f"{spot.short(spot.expression)} is an RNN, GRU or LSTM"
    why = "Dynamo leaves these modules to cuDNN and to plain Python, unless it is told to trace them."
    allow = setting(
        spot, "allow_rnn = True", "It is experimental: compare the results, and the time.", "Let Dynamo trace it"
    )
    return Advice(what, why, (allow,))


def not_rebuilt(spot: Spot) -> Advice:
    """An object that lives across a break, and that Dynamo cannot make again after it."""
    if isinstance(spot.node, ast.Return):
        what = f"{spot.short(spot.node)} returns an object that compiled code cannot hand out"
        why = (
            f"{_shortened(spot.cause.explanation)} It was made while tracing, and Dynamo has no code that makes it again "
            "after the graph."
        )
        return Advice(what, why, (Option("Return the tensors only, and make that object in the caller"),))
    what = f"an object that is alive at {spot.short(spot.expression or spot.statement)} cannot be carried over a graph break"
    why = (
        f"{_shortened(spot.cause.explanation)} A graph break during its lifetime causes this one. "
        "Fix that break, which is reported at the same line or nearby, and this one disappears too."
    )
    return Advice(what, why, (Option("Fix that other break first"),))


def _shortened(text: str) -> str:
    return re.sub(r"sourceless variable (\w+)\(.*", r"a `\1`.", text).strip()


def module_attribute(spot: Spot) -> Advice:
    """``super()`` of something that is not a method."""
    what = f"{spot.short(spot.expression)} reaches a slot of a C class through `super()`"
    why = "Dynamo follows `super()` to Python methods only."
    return Advice(what, why, some(hoist(spot, spot.call)))
