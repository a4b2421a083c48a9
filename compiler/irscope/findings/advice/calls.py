"""Calls into code that Dynamo does not look into: C functions, skipped modules, methods of unknown objects."""

from __future__ import annotations

import ast
import re

from irscope.findings.advice import arrays, output, randomness
from irscope.findings.advice.common import around, custom_op, guard, hoist, some
from irscope.findings.advice.families import FAMILIES, OUTSIDE, in_caller, name_at
from irscope.findings.advice.model import Advice, Option
from irscope.findings.advice.spot import Spot

_CONTEXT = re.compile(r"module: (?P<module>[^,]*), qualname: (?P<name>[^,]*), skip reason")
_ONCE = "It is then the same in every call."


def skipped_call(spot: Spot) -> Advice:
    """GB0007, GB0008, GB0147, GB0148, GB0156 and their like: by what the user's line calls."""
    name = name_at(spot)
    if name in ("warnings.warn", "warnings.warn_explicit"):
        return output.warning(spot)
    if name.startswith("logging."):
        return output.root_logging(spot)
    for family in FAMILIES:
        if any(name == p or (p[-1] == "." and name.startswith(p)) for p in family.prefixes):
            return Advice(f"{spot.short(spot.expression)} {family.what}", family.why, family.options(spot))
    return by_method(spot) or _unknown(spot)


# --- methods of objects -----------------------------------------------------------------------------------------------


def by_method(spot: Spot) -> Advice | None:
    """By the name of the method, where the object is a variable: ``lock.acquire()``, ``file.write(…)``."""
    call = spot.call
    if call is None or not isinstance(call.func, ast.Attribute):
        return None
    method, receiver = call.func.attr, spot.tight(call.func.value)
    shown = spot.short(call)
    if method in ("acquire", "release"):
        outside = around(spot, "Hold the lock in the caller", f"with {receiver}:")
        outside = Option(outside.do, outside.code.replace("\n", "\n    "), outside.caveat)
        return Advice(f"{shown} acquires or releases a lock while tracing", OUTSIDE, (outside,))
    if method in ("write", "writelines", "flush", "close", "read", "readline", "seek"):
        return Advice(f"{shown} works on a file while tracing", OUTSIDE, in_caller(spot))
    if method == "rotate" and "deque" in spot.cause.explanation and call.args:
        n = spot.text(call.args[0])
        code = f"{receiver}.extendleft([{receiver}.pop() for _ in range({n})])"
        edits = (
            (spot.replace(call, code),)
            if isinstance(call.args[0], ast.Constant) and isinstance(call.args[0].value, int)
            else ()
        )
        return Advice(
            f"{shown} is a method that Dynamo has no rule for", spot.cause.explanation,
            (Option("Use the methods that it knows", code, "For a positive number.", edits),),
        )  # fmt: skip
    if method in ("data_ptr", "storage", "untyped_storage", "storage_offset"):
        return arrays.storage(spot)
    if method in ("manual_seed", "seed", "get_state", "set_state"):
        return randomness.generator_method(spot)
    return None


def _unknown(spot: Spot) -> Advice:
    """A function of an extension, or one that PyTorch has marked as not to be traced."""
    match = _CONTEXT.search(spot.cause.context)
    c_function = "builtin" in spot.cause.explanation or "C extension" in spot.cause.context
    what = f"{spot.short(spot.expression)} calls code that Dynamo does not trace"
    if match is not None:
        full = f"{match['module']}.{match['name']}"
        why = f"It calls `{full}`, which " + (
            "is C code and has no Python bytecode to follow."
            if c_function
            else "PyTorch has marked as not to be traced."
        )
    else:
        why = spot.cause.explanation
    return Advice(
        what, why,
        some(
            hoist(spot, spot.call, _ONCE) if not spot.alone else None,
            custom_op(spot, spot.call) if spot.call is not None and not spot.alone else None,
            guard(spot, "Then it is not done in compiled runs."),
        ),
    )  # fmt: skip


def disabled(spot: Spot) -> Advice:
    """A function under ``torch.compiler.disable``."""
    call = spot.call
    name = call.func if call is not None else None
    reason = re.search(r"\(reason: (?P<reason>.*)\)", spot.cause.explanation)
    given = f' Its reason: "{reason["reason"]}".' if reason and reason["reason"] != "None" else ""
    what = f"{spot.short(call)} is marked with `torch.compiler.disable`"
    why = f"It is marked to run uncompiled.{given}"
    return Advice(what, why, some(_enabled(spot, name), custom_op(spot, call)))


def _enabled(spot: Spot, function: ast.expr | None) -> Option | None:
    word = (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )
    for node in ast.walk(spot.tree) if spot.tree is not None else ():
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) or node.name != word:
            continue
        for decorator in node.decorator_list:
            target = decorator.func if isinstance(decorator, ast.Call) else decorator
            if spot.qualified(target) in ("torch.compiler.disable", "torch._dynamo.disable"):
                shown = spot.text(decorator)
                return Option(
                    f"Remove `@{shown}` from `{word}` (line {decorator.lineno})",
                    "",
                    "The reason why it was put there may still apply.",
                    (spot.without_line(decorator),),
                )
    return Option(
        f"Remove the `torch.compiler.disable` of `{word}`", "", "The reason why it was put there may still apply."
    )


def user_break(spot: Spot) -> Advice:
    """``torch._dynamo.graph_break()`` and ``skip_frame()``."""
    if spot.call is None or spot.qualified(spot.call.func) not in (
        "torch._dynamo.graph_break",
        "torch._dynamo.skip_frame",
    ):
        what = f"{spot.short(spot.expression)} calls code in which PyTorch itself asks for a graph break"
        return Advice(what, "PyTorch runs this part of its library as plain Python on purpose.", in_caller(spot))
    what = f"{spot.short(spot.call)} asks for it"
    option = None
    if spot.alone and spot.statement is not None:
        option = Option("Remove the line", "", "", (spot.replace_statements([spot.statement], "pass"),))
    return Advice(what, "It is a request in the code, not a limit of the compiler.", some(option))
