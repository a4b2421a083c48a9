"""Calls into code that Dynamo does not look into: C functions, skipped modules, methods of unknown objects."""

from __future__ import annotations

import ast
import os
import re

from irscope.events.stack import name_of_code
from irscope.fixing.advice import arrays, randomness
from irscope.fixing.advice.common import around, custom_op, hoist, pass_in, plain_rule, some
from irscope.fixing.advice.fallback import from_registry
from irscope.fixing.advice.families import FAMILIES, OUTSIDE, in_caller, name_at
from irscope.fixing.advice.model import Advice, Option
from irscope.fixing.advice.spot import Spot
from irscope.fixing.syntax import Function
from irscope.usercode.bindings import last_word

_CONTEXT = re.compile(r"module: (?P<module>[^,]*), qualname: (?P<name>[^,]*), skip reason")
_DISABLE = ("torch.compiler.disable", "torch._dynamo.disable")
_KEPT = "The reason why it was put there may still apply."
_SHARDING = "/torch/distributed/fsdp/_fully_shard/"


def skipped_call(spot: Spot) -> Advice:
    """GB0007, GB0008, GB0147, GB0148, GB0156 and similar ones: by what the user's line calls."""
    name = name_at(spot)
    if any(_SHARDING in place.file.replace(os.sep, "/") for place in spot.context.beneath):
        return _sharded(spot)
    # ``next(it)``, or ``for x in it`` where ``it`` is not a call
    loops = isinstance(spot.statement, ast.For) and spot.statement.iter is spot.expression
    if name == "next" or (spot.call is None and loops):
        return stepped(spot)
    for names, advise in FAMILIES.items():
        if any(name == p or (p[-1] == "." and name.startswith(p)) for p in names.split()):
            return advise(spot)
    return by_method(spot) or _unknown(spot)


_sharded = plain_rule(  # a module under ``fully_shard`` (FSDP2), whose hooks are under ``torch._dynamo.disable``
    "runs a module under `fully_shard`, and Dynamo does not trace the hooks of FSDP2",
    "They gather the parameters before the module runs, and scatter the gradients after it. PyTorch runs them as plain "
    "Python, so no graph goes across a sharded module, and none has FSDP2's collectives.",
    lambda _: [Option(
        "Compile each module before it is sharded, in place of the model around them",
        "block = torch.compile(block)\nfully_shard(block)",
        "Names in its state dict begin with `_orig_mod.` then; `block.compile()` keeps the names, "
        "and compiles a `forward` of your own, but not a block of PyTorch's, such as `nn.Sequential`.")],
)  # fmt: skip


# --- methods of objects -----------------------------------------------------------------------------------------------


def by_method(spot: Spot) -> Advice | None:
    """By the name of the method, where the object is a variable: ``lock.acquire()``, ``file.write(…)``."""
    call = spot.call
    if call is None or not isinstance(call.func, ast.Attribute):
        return None
    method, receiver = call.func.attr, spot.tight(call.func.value)
    shown, said = spot.short(call), spot.cause.explanation
    if method in ("acquire", "release"):
        outside = around(spot, "Hold the lock in the caller", f"with {receiver}:")
        return Advice(f"{shown} acquires or releases a lock while tracing", OUTSIDE, (outside,))
    if method in ("write", "writelines", "flush", "close", "read", "readline", "seek"):
        return Advice(f"{shown} works on a file while tracing", OUTSIDE, in_caller(spot))
    if method == "rotate" and "deque" in said and call.args:
        code = f"{receiver}.extendleft([{receiver}.pop() for _ in range({spot.text(call.args[0])})])"
        is_number = isinstance(call.args[0], ast.Constant) and isinstance(call.args[0].value, int)
        edits = spot.edits({call: code}) if is_number else ()
        option = Option("Use the methods that it knows", code, "For a positive number.", edits)
        return Advice(f"{shown} is a method that Dynamo has no rule for", said, (option,))
    if arrays.asks_for_memory(call) is call:
        return arrays.storage(spot)
    if said.endswith(("of class `Generator`", "of class `Random`", "of class `RandomState`")):
        return randomness.number_drawn(spot)
    is_of_generator = method in ("manual_seed", "seed", "get_state", "set_state")
    return randomness.generator_method(spot) if is_of_generator else None


def stepped(spot: Spot) -> Advice:
    """``next(it)`` and ``for x in it`` over an iterator that Dynamo does not know."""
    loop = spot.statement if isinstance(spot.statement, ast.For) else None
    node = spot.expression or (loop.iter if loop is not None else None)
    what = f"{spot.short(node)} steps through an iterator that Dynamo does not know"
    why = "Its state lives outside of the graph, in C code, a file or another object."
    if loop is None:
        passed = pass_in(spot, node, "A Python number would be compiled in; wrap it in `torch.tensor(...)`.")
        return Advice(what, why, some(passed or Option("Take the next element in the caller, and pass it in")))
    made = hoist(spot, node, "For elements that fit into memory.", as_list=True)
    outside = Option("Loop in the caller, and compile what is done with each element")
    may_be_long = "DataLoader" in spot.cause.explanation
    return Advice(what, why, some(outside, made) if may_be_long else some(made, outside))


def _unknown(spot: Spot) -> Advice:
    """A function of an extension, or one that PyTorch has marked as not to be traced."""
    match, why = _CONTEXT.search(spot.cause.context), spot.cause.explanation
    if match is not None:
        is_c_code = "builtin" in why or "C extension" in spot.cause.context
        reason = "is C code and has no Python bytecode to follow"
        reason = reason if is_c_code else "PyTorch has marked as not to be traced"
        why = f"It calls `{match['module']}.{match['name']}`, which {reason}."
    options = in_caller(spot) if spot.alone else some(hoist(spot, spot.call), custom_op(spot, spot.call))
    return Advice(f"{spot.short(spot.expression)} calls code that Dynamo does not trace", why, options)


def disabled(spot: Spot) -> Advice:
    """A function under ``torch.compiler.disable``; a module, which breaks only when it is called."""
    function, refused = spot.call.func if spot.call is not None else spot.expression, spot.context.refused
    reason = re.search(r"\(reason: (?P<reason>.*)\)", spot.cause.explanation)
    said = f' Its reason: "{reason["reason"]}".' if reason and reason["reason"] != "None" else ""
    word = last_word(function) if function is not None else ""
    marked = name_of_code(refused) if refused is not None else word
    is_module, is_direct = spot.cause.code == "GB0148", marked in (word, f"{word}.forward")
    how = "is" if is_direct else f"calls `{marked}`, which is"
    what = f"{spot.short(function)} is a module wrapped" if is_module else f"{spot.short(spot.call)} {how} marked"
    options = some(_enabled(spot, word, marked), custom_op(spot, spot.call) if is_direct and not is_module else None)
    return Advice(f"{what} with `torch.compiler.disable`", f"It is marked to run uncompiled.{said}", options)


def delayed(spot: Spot) -> Advice:
    """What breaks only when it is called: a module under ``torch.compiler.disable``, a view of an input in place."""
    if "torch.compiler.disable" in spot.cause.explanation:
        return disabled(spot)
    return arrays.resized(spot) if "inplace view" in spot.cause.explanation else from_registry(spot)


def _enabled(spot: Spot, word: str, marked: str) -> Option:
    """Without the mark of a function, which a line calls by a word: a decorator, or a call around the function or module."""
    refused, names = spot.context.refused, {word, marked.rpartition(".")[2]}
    line = refused.co_firstlineno if refused is not None and refused.co_filename == spot.context.file else 0
    definitions = [node for node in spot.source.nodes if isinstance(node, Function) and node.name in names
                   if refused is None or spot.source.first_line(node) == line]  # fmt: skip
    decorators = [mark for node in definitions for mark in node.decorator_list if _disables(spot, mark)]
    wraps = [call for node in spot.source.all(ast.Assign) if isinstance(call := node.value, ast.Call)
             and _disables(spot, call) and names & set(map(last_word, [*call.args[:1], *node.targets]))]  # fmt: skip
    if len(decorators) + len(wraps) != 1:
        return Option(f"Remove the `torch.compiler.disable` of `{marked}`", "", _KEPT)
    for decorator in decorators:
        do = f"Remove `@{spot.text(decorator)}` from `{marked}` (line {decorator.lineno})"
        return Option(do, "", _KEPT, spot.edits({decorator: None}))
    (call,) = wraps
    do = f"Remove the `{spot.text(call.func)}` around `{marked}` (line {call.lineno})"
    is_op = spot.source.full_name(call.args[0]).startswith("torch.ops.")
    caveat = f"{_KEPT} An operator can break the graph for reasons of its own." if is_op else _KEPT
    return Option(do, "", caveat, () if is_op else spot.edits({call: spot.text(call.args[0])}))


def _disables(spot: Spot, node: ast.expr) -> bool:
    return spot.source.full_name(node.func if isinstance(node, ast.Call) else node) in _DISABLE


def user_break(spot: Spot) -> Advice:
    """``torch._dynamo.graph_break()`` and ``skip_frame()``."""
    option = None
    if spot.alone and spot.statement is not None:
        unseen = "Dynamo has not seen what comes after it: there may be more breaks." if spot.context.skipped else ""
        option = Option("Remove the line", "", unseen, spot.edits({spot.statement: "pass"}))
    return Advice(f"{spot.short(spot.call)} asks for it", "It is a request, not a limit of the compiler.", some(option))
