"""Functions of Python, NumPy and torch that break for the same reason, by their full names."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable

from irscope.fixing.advice import arrays, randomness
from irscope.fixing.advice.common import around, guard, hoist, pass_in, replacing, some
from irscope.fixing.advice.model import Option
from irscope.fixing.advice.spot import Spot
from irscope.vocabulary.records import dataclass

OUTSIDE = "Compiled code is a graph of tensor operations; this reaches outside of Python and must happen in its place."
_CHANGING = ("pop", "popitem", "update", "setdefault", "clear")


@dataclass(frozen=True)
class Family:
    """Calls that break for the same reason.  ``prefixes`` are full names; one that ends in a dot holds a module."""

    prefixes: tuple[str, ...]
    what: str
    why: str
    options: Callable[[Spot], tuple[Option, ...]]


def name_at(spot: Spot) -> str:
    """The full name of what the line calls or reads; empty for what is neither imported nor a builtin."""
    node: ast.AST | None = spot.call.func if spot.call is not None else spot.expression
    if isinstance(node, ast.Subscript):
        node = node.value
    root = node
    while isinstance(root, ast.Attribute):
        root = root.value
    known = isinstance(root, ast.Name) and (root.id in spot.imports or hasattr(builtins, root.id))
    return spot.qualified(node) if known else ""


def _timed_outside(spot: Spot) -> tuple[Option, ...]:
    clock = spot.text(spot.call) if spot.call is not None else "time.perf_counter()"
    outside = around(
        spot, "Measure the time around the call of the compiled code", f"start = {clock}",
        "On a GPU synchronize before each reading.", f"elapsed = {clock} - start",
    )  # fmt: skip
    return (outside,)


def _waits(spot: Spot) -> tuple[Option, ...]:
    call = spot.text(spot.call) if spot.call is not None else ""
    return (around(spot, "Wait in the caller", call),)


def _environment(spot: Spot) -> tuple[Option, ...]:
    """``os.environ``: reading it, or changing it by an assignment, ``del`` or a method."""
    statement = spot.statement
    if _is_change(spot) and statement is not None:
        return (around(spot, "Do it in the caller, before the compiled code", spot.text(statement)),)
    return in_caller(spot) if name_at(spot).rpartition(".")[2] in _CHANGING else _computed_before(spot)


def _is_change(spot: Spot) -> bool:
    """Whether an entry is assigned or deleted."""
    return isinstance(spot.expression, ast.Subscript) and not isinstance(spot.expression.ctx, ast.Load)


def _computed_before(spot: Spot) -> tuple[Option, ...]:
    call = spot.call
    loop = spot.parent(call) if call is not None else None
    if isinstance(loop, ast.For) and loop.iter is call and call is not None:
        return some(hoist(spot, call, as_list=True))
    if spot.alone and spot.expression is not None:
        return (around(spot, "Do it in the caller", spot.text(spot.expression)),)
    return some(hoist(spot, spot.expression), pass_in(spot, spot.expression))


def _opened(spot: Spot) -> tuple[Option, ...]:
    """``open(…)`` outside of a ``with``: what is read may be passed in, the file itself breaks again."""
    whole: ast.AST | None = spot.call
    while isinstance(parent := spot.parent(whole) if whole is not None else None, (ast.Attribute, ast.Call)):
        if isinstance(parent, ast.Call) and parent.func is not whole:
            break
        whole = parent
    if isinstance(whole, ast.Call) and whole is not spot.call:
        return some(hoist(spot, whole), pass_in(spot, whole))
    return (Option("Open, use and close the file in the caller; pass what is read as an argument"),)


def in_caller(spot: Spot) -> tuple[Option, ...]:
    """Something done to the world: best done in the caller."""
    text = spot.text(spot.expression) if spot.expression is not None else ""
    if not spot.alone:
        return some(pass_in(spot, spot.expression, ""))
    # Only what is done first can be shown before the call: an optimizer's step comes after the backward.
    body = getattr(spot.functions[0], "body", None) if spot.functions else None
    before = text if isinstance(body, list) and spot.statement is body[0] else ""
    return some(guard(spot, "Then it is not done in compiled runs."), around(spot, "Do it in the caller", before))


def _sorted_structure(spot: Spot) -> tuple[Option, ...]:
    call = spot.call
    name = name_at(spot)
    caveat = "For Python numbers, not tensors."
    options = [hoist(spot, spot.expression)]
    if call is None or len(call.args) != 2:
        return some(*options)
    values, item = (spot.text(arg) for arg in call.args)
    if name == "heapq.heappush" and spot.alone and spot.statement is not None:
        code = f"{values}.append({item})\n{values}.sort()"
        changes = (spot.replace_statements([spot.statement], code),)
        options.append(Option("Sort a plain list", code, caveat, changes))
    if name.startswith("bisect.bisect"):
        code = f"sum(v {'<' if name.endswith('left') else '<='} {item} for v in {values})"
        options.append(replacing(spot, call, code, "Count in Python", caveat))
    return some(*options)


def _imported(spot: Spot) -> tuple[Option, ...]:
    call = spot.call
    argument = call.args[0] if call is not None and call.args else None
    if isinstance(argument, ast.Constant) and isinstance(module := argument.value, str) and call is not None:
        if module.isidentifier() and module not in spot.local_names():
            changes = (spot.with_import(f"import {module}"), spot.replace(call, module))
            return (Option("Import it at the top of the file", f"import {module}", "", changes),)
    return some(hoist(spot, call, ""))


def _settings(spot: Spot) -> tuple[Option, ...]:
    text = spot.text(spot.expression) if spot.expression is not None else ""
    first = None
    if spot.alone and spot.expression is not None and spot.hoistable(spot.expression):
        first = Option(
            "Set it once, above the function",
            f"{text}   # above the function",
            "It then holds for the whole process, from the start.",
            (spot.above(text), spot.replace(spot.expression, "pass")),
        )
    return some(first, around(spot, "Set it in the caller", text if spot.alone else f"value = {text}"))


FAMILIES = (
    Family(("random.", "numpy.random.", "torch.manual_seed", "torch.seed", "torch.get_rng_state", "torch.set_rng_state",
             "torch.random.", "torch.cuda.manual_seed", "torch.cuda.manual_seed_all", "torch.initial_seed"),
            "uses a random number generator that Dynamo cannot trace",
            "Dynamo knows `random.uniform`, `randint` and `randrange`, and torch's own random operators; "
            "seeding and the others change a state that is not in the graph.",
            randomness.options),
    Family(("time.sleep",), "waits while tracing", OUTSIDE, _waits),
    Family(("time.", "datetime.datetime.now", "datetime.datetime.utcnow", "datetime.date.today", "datetime.datetime.today"),
            "reads the clock while tracing", "The time is different in each run; a graph would repeat that of the first.",
            _timed_outside),
    Family(("importlib.", "__import__"), "imports a module while tracing",
            "Dynamo traces an `import` statement, but not the machinery behind these functions.", _imported),
    Family(("os.environ", "os.environ."), "uses the environment while tracing",
            "What it holds may be different when the graph runs, and a graph cannot change it.", _environment),
    Family(("os.path.", "os.getenv", "os.getpid", "os.cpu_count", "os.getcwd", "pathlib.",
             "glob.", "sys.getsizeof", "inspect.signature", "inspect.getsource", "inspect.getfile", "torch.load",
             "numpy.load"),
            "reads something outside of the graph while tracing",
            "What it reads may be different when the graph runs, so Dynamo does not trace it.", _computed_before),
    Family(("open",), "opens a file while tracing",
            "A graph holds operations on tensors; files must be read or written before or after it.", _opened),
    Family(("os.", "shutil.", "tempfile.", "io.", "subprocess.", "socket.", "torch.save", "input",
             "sys.stdout.write", "sys.stderr.write", "sys.stdout.flush", "sys.stderr.flush", "numpy.save", "numpy.savez"),
            "reaches files, processes or the environment while tracing", OUTSIDE, in_caller),
    Family(("json.", "pickle.", "hashlib.", "base64.", "struct.", "zlib.", "re.", "decimal.", "fractions.",
             "copyreg.", "ctypes.", "datetime.", "string.", "codecs."),
            "is a library function that Dynamo cannot trace",
            "It runs in C, or in Python code that Dynamo leaves alone, so it is not in the graph.", _computed_before),
    Family(("threading.", "queue.", "multiprocessing.", "concurrent.", "asyncio.", "signal.", "_thread.", "uuid.", "secrets."),
            "reaches threads, tasks or the system while tracing", OUTSIDE, in_caller),
    Family(("inspect.", "traceback.", "sys.", "gc.", "weakref.", "faulthandler.", "tracemalloc.", "resource."),
            "looks at the running interpreter",
            "What runs while a graph is traced is not what runs later, so Dynamo does not trace it.", in_caller),
    Family(("heapq.", "bisect."), "is a C function of the standard library that Dynamo cannot trace",
            "Dynamo follows Python bytecode; a C function has none.", _sorted_structure),
    Family(("torch.set_num_threads", "torch.set_default_device", "torch.set_default_dtype", "torch.backends.",
             "torch.use_deterministic_algorithms", "torch.set_float32_matmul_precision", "torch.set_printoptions",
             "torch.set_num_interop_threads", "torch.cuda.empty_cache", "torch.cuda.set_device"),
            "changes a setting of torch", "The graph is made for the settings at its start.", _settings),
    Family(("numpy.",), "is a NumPy function that Dynamo cannot trace",
            "Dynamo turns NumPy code into torch operations; this function has no torch equivalent.", arrays.numpy_options),
)  # fmt: skip
