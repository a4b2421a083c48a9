"""Calls into code that Dynamo does not look into: C functions, skipped modules, methods of unknown objects."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass

from irscope.findings.advice import arrays, output, randomness
from irscope.findings.advice.common import around, custom_op, guard, hoist, pass_in, some
from irscope.findings.advice.model import Advice, Option
from irscope.findings.advice.spot import Spot

_CONTEXT = re.compile(r"module: (?P<module>[^,]*), qualname: (?P<name>[^,]*), skip reason")
_ONCE = "It is then the same in every call."


@dataclass(frozen=True)
class _Family:
    """Calls that break for the same reason.  ``prefixes`` are full names; one that ends in a dot holds a module."""

    prefixes: tuple[str, ...]
    what: str
    why: str
    options: Callable[[Spot], tuple[Option, ...]]


def skipped_call(spot: Spot) -> Advice:
    """GB0007, GB0008, GB0147, GB0148, GB0156 and their like: by what the user's line calls."""
    name = name_at(spot)
    if name in ("warnings.warn", "warnings.warn_explicit"):
        return output.warning(spot)
    if name.startswith("logging."):
        return output.root_logging(spot)
    for family in _FAMILIES:
        if any(name == p or (p[-1] == "." and name.startswith(p)) for p in family.prefixes):
            return Advice(f"{spot.short(spot.expression)} {family.what}", family.why, family.options(spot))
    return by_method(spot) or _unknown(spot)


def name_at(spot: Spot) -> str:
    """The full name of what the line calls or reads."""
    node: ast.AST | None = spot.call.func if spot.call is not None else spot.expression
    if isinstance(node, ast.Subscript):
        node = node.value
    return spot.qualified(node)


# --- families ---------------------------------------------------------------------------------------------------------


def _timed_outside(spot: Spot) -> tuple[Option, ...]:
    clock = spot.text(spot.call) if spot.call is not None else "time.perf_counter()"
    outside = around(
        spot, "Take the time around the call of the compiled code", f"start = {clock}",
        "On a GPU synchronize before each reading.", f"elapsed = {clock} - start",
    )  # fmt: skip
    return some(guard(spot, "Compiled runs then do not take it."), outside)


def _waits(spot: Spot) -> tuple[Option, ...]:
    call = spot.text(spot.call) if spot.call is not None else ""
    return some(guard(spot, "Compiled runs then do not wait."), around(spot, "Wait in the caller", call))


def _computed_before(spot: Spot) -> tuple[Option, ...]:
    return some(
        hoist(spot, spot.expression, _ONCE),
        guard(spot, "Then it is not done in compiled runs."),
        pass_in(spot, spot.expression, "The function is compiled once for each value.") if not spot.alone else None,
    )


def _effect(spot: Spot) -> tuple[Option, ...]:
    """Something done to the world: best done in the caller."""
    text = (
        spot.text(spot.statement).split("\n")[0]
        if spot.statement is not None
        else spot.text(spot.expression or ast.Name("f"))
    )
    return some(
        guard(spot, "Then it is not done in compiled runs."),
        around(
            spot,
            "Do it in the caller",
            text if spot.alone else f"value = {spot.text(spot.expression)}" if spot.expression else "",
        ),
    )


def _sorted_structure(spot: Spot) -> tuple[Option, ...]:
    call = spot.call
    name = name_at(spot)
    options = [hoist(spot, spot.expression, _ONCE)]
    if (
        call is not None
        and name == "heapq.heappush"
        and len(call.args) == 2
        and spot.statement is not None
        and spot.alone
    ):
        heap, item = spot.text(call.args[0]), spot.text(call.args[1])
        code = f"{heap}.append({item})\n{heap}.sort()"
        options.append(
            Option(
                "Sort a plain list",
                code,
                "For Python numbers, not tensors.",
                (spot.replace_statements([spot.statement], code),),
            )
        )
    if call is not None and name.startswith("bisect.bisect") and len(call.args) == 2:
        values, x = (spot.text(arg) for arg in call.args)
        sign = "<" if name.endswith("left") else "<="
        code = f"sum(v {sign} {x} for v in {values})"
        options.append(Option("Count in Python", code, "For Python numbers, not tensors.", (spot.replace(call, code),)))
    return some(*options)


def _imported(spot: Spot) -> tuple[Option, ...]:
    call = spot.call
    argument = call.args[0] if call is not None and call.args else None
    if isinstance(argument, ast.Constant) and isinstance(argument.value, str) and call is not None:
        module = argument.value
        edits = (spot.above(f"import {module}\n"), spot.replace(call, module)) if module.isidentifier() else ()
        if module.isidentifier() and module not in spot.local_names():
            return (Option("Import it at the top of the file", f"import {module}", "", edits),)
    return some(hoist(spot, call, ""))


def _settings(spot: Spot) -> tuple[Option, ...]:
    text = spot.text(spot.expression) if spot.expression is not None else ""
    first = None
    if spot.alone and spot.expression is not None and spot.hoistable(spot.expression):
        first = Option(
            "Set it once, above the function",
            f"{text}   # above the function",
            "It then holds for the whole process, from the start.",
            (spot.above(text + "\n"), spot.replace(spot.expression, "pass")),
        )
    return some(first, around(spot, "Or set it in the caller", text if spot.alone else f"value = {text}"))


_EFFECT_WHY = (
    "Compiled code is a graph of tensor operations; this reaches outside of Python and must happen in its place."
)
_FAMILIES = (
    _Family(("random.", "numpy.random.", "torch.manual_seed", "torch.seed", "torch.get_rng_state", "torch.set_rng_state",
             "torch.random.", "torch.cuda.manual_seed", "torch.cuda.manual_seed_all", "torch.initial_seed"),
            "uses a random number generator that Dynamo cannot trace",
            "Dynamo knows `random.random`, `randint`, `randrange` and `uniform`, and torch's own random operators; "
            "seeding and the others change a state that is not in the graph.",
            randomness.options),
    _Family(("time.sleep",), "waits while tracing", _EFFECT_WHY, _waits),
    _Family(("time.", "datetime.datetime.now", "datetime.datetime.utcnow", "datetime.date.today", "datetime.datetime.today"),
            "reads the clock while tracing", "The time is different in each run; a graph would repeat that of the first.",
            _timed_outside),
    _Family(("importlib.", "__import__"), "imports a module while tracing",
            "Dynamo traces an `import` statement, but not the machinery behind these functions.", _imported),
    _Family(("open", "os.", "shutil.", "pathlib.", "tempfile.", "glob.", "io.", "subprocess.", "socket.", "torch.save",
             "torch.load", "input", "sys.stdout.write", "sys.stderr.write", "sys.stdout.flush", "sys.stderr.flush",
             "numpy.save", "numpy.load", "numpy.savez"),
            "reaches files, processes or the environment while tracing", _EFFECT_WHY, _computed_before),
    _Family(("json.", "pickle.", "hashlib.", "base64.", "struct.", "zlib.", "uuid.", "re.", "decimal.", "fractions.",
             "copyreg.", "ctypes.", "datetime.", "string.", "codecs.", "secrets."),
            "is a library function that Dynamo cannot trace",
            "It runs in C, or in Python code that Dynamo leaves alone, so it is not in the graph.", _computed_before),
    _Family(("threading.", "queue.", "multiprocessing.", "concurrent.", "asyncio.", "signal.", "_thread."),
            "handles threads, processes or tasks while tracing", _EFFECT_WHY, _effect),
    _Family(("inspect.", "traceback.", "sys.", "gc.", "weakref.", "faulthandler.", "tracemalloc.", "resource."),
            "looks at the running interpreter",
            "What runs while a graph is traced is not what runs later, so Dynamo does not trace it.", _computed_before),
    _Family(("heapq.", "bisect."), "is a C function of the standard library that Dynamo cannot trace",
            "Dynamo follows Python bytecode; a C function has none.", _sorted_structure),
    _Family(("torch.set_num_threads", "torch.set_default_device", "torch.set_default_dtype", "torch.backends.",
             "torch.use_deterministic_algorithms", "torch.set_float32_matmul_precision", "torch.set_printoptions",
             "torch.set_num_interop_threads", "torch.cuda.empty_cache", "torch.cuda.set_device"),
            "changes a setting of torch", "The graph is made for the settings at its start.", _settings),
    _Family(("numpy.",), "is a NumPy function that Dynamo cannot trace",
            "Dynamo turns NumPy code into torch operations; this function has no such twin.", arrays.numpy_options),
)  # fmt: skip


# --- methods of objects -----------------------------------------------------------------------------------------------


def by_method(spot: Spot) -> Advice | None:
    """By the name of the method, where the object is a variable: ``lock.acquire()``, ``file.write(…)``."""
    call = spot.call
    if call is None or not isinstance(call.func, ast.Attribute):
        return None
    method, receiver = call.func.attr, spot.tight(call.func.value)
    shown = spot.short(call)
    if method in ("acquire", "release"):
        return Advice(f"{shown} takes or gives back a lock while tracing", _EFFECT_WHY, _effect(spot))
    if method in ("write", "writelines", "flush", "close", "read", "readline", "seek"):
        return Advice(f"{shown} works on a file while tracing", _EFFECT_WHY, _effect(spot))
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
        why = f"It comes to `{full}`, which " + (
            "is C code and has no Python bytecode to follow."
            if c_function
            else "PyTorch has marked as not to be traced."
        )
    else:
        why = spot.cause.explanation
    return Advice(
        what, why,
        some(
            hoist(spot, spot.call, _ONCE),
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
    why = f"Somebody has asked for it to run as plain Python.{given}"
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
                    "The reason why it was put there may hold still.",
                    (spot.without_line(decorator),),
                )
    return Option(
        f"Remove the `torch.compiler.disable` of `{word}`", "", "The reason why it was put there may hold still."
    )


def user_break(spot: Spot) -> Advice:
    """``torch._dynamo.graph_break()`` and ``skip_frame()``."""
    if spot.call is None or spot.qualified(spot.call.func) not in (
        "torch._dynamo.graph_break",
        "torch._dynamo.skip_frame",
    ):
        what = f"{spot.short(spot.expression)} calls code in which PyTorch itself asks for a graph break"
        return Advice(what, "PyTorch runs this part of its library as plain Python on purpose.", _effect(spot))
    what = f"{spot.short(spot.call)} asks for it"
    option = None
    if spot.alone and spot.statement is not None:
        option = Option("Remove the line", "", "", (spot.replace_statements([spot.statement], "pass"),))
    return Advice(what, "It is a request in the code, not a limit of the compiler.", some(option))
