"""Functions of Python, NumPy and torch that break for the same reason, by their full names."""

from __future__ import annotations

import ast
import builtins

from irscope.fixing.advice import arrays, contexts, output, randomness
from irscope.fixing.advice.common import around, guard, hoist, pass_in, plain_rule, replacing, some
from irscope.fixing.advice.model import Option
from irscope.fixing.advice.spot import Spot
from irscope.usercode.bindings import dotted

OUTSIDE = "Compiled code is a graph of tensor operations; this reaches outside of Python and must happen in its place."
_CHANGING = ("pop", "popitem", "update", "setdefault", "clear")


def name_at(spot: Spot) -> str:
    """The full name of what the line calls or reads; empty for what is neither imported nor a builtin."""
    node = spot.call.func if spot.call is not None else spot.expression
    node = node.value if isinstance(node, ast.Subscript) else node
    head = dotted(node).partition(".")[0] if node is not None else ""
    return spot.source.full_name(node) if head in spot.source.imports or hasattr(builtins, head) else ""


def _environment(spot: Spot) -> tuple[Option, ...]:
    """``os.environ``: reading it, or changing it by an assignment, ``del`` or a method."""
    is_change = isinstance(spot.expression, ast.Subscript) and not isinstance(spot.expression.ctx, ast.Load)
    if is_change and spot.statement is not None:
        return (around(spot, "Do it in the caller, before the compiled code", spot.text(spot.statement)),)
    return in_caller(spot) if name_at(spot).rpartition(".")[2] in _CHANGING else _computed_before(spot)


def _computed_before(spot: Spot) -> tuple[Option, ...]:
    loop = spot.source.parent(spot.call)
    if isinstance(loop, ast.For) and loop.iter is spot.call:
        return some(hoist(spot, spot.call, as_list=True))
    if spot.alone:
        return (around(spot, "Do it in the caller", spot.text(spot.expression)),)
    return some(hoist(spot, spot.expression), pass_in(spot, spot.expression))


def _opened(spot: Spot) -> tuple[Option, ...]:
    """``open(…)``; outside of a ``with``, what is read may be passed in, the file itself breaks again."""
    if options := contexts.opened(spot):
        return options
    *_, whole = (spot.call, *spot.methods(spot.call))
    if whole is not spot.call:
        return some(hoist(spot, whole), pass_in(spot, whole))
    return (Option("Open, use and close the file in the caller; pass what is read as an argument"),)


def in_caller(spot: Spot) -> tuple[Option, ...]:
    """Something done to the world: best done in the caller; in what reads an attribute or item, the value is passed in."""
    if spot.context.inlined and (name := spot.context.function.rpartition(".")[2]).startswith("__get"):
        return (Option(f"Read what `{name}` gives before the compiled function is called, and pass the value in"),)
    if not spot.alone:
        return some(pass_in(spot, spot.expression, ""))
    # Only what is done first can be shown before the call: an optimizer's step comes after the backward.
    body = getattr(spot.functions[0], "body", None) if spot.functions else None
    before = spot.text(spot.expression) if isinstance(body, list) and spot.statement is body[0] else ""
    return some(guard(spot, "Then it is not done in compiled runs."), around(spot, "Do it in the caller", before))


def _sorted_structure(spot: Spot) -> tuple[Option, ...]:
    call, name, caveat, option = spot.call, name_at(spot), "For Python numbers, not tensors.", None
    if call is not None and len(call.args) == 2:
        values, item = map(spot.text, call.args)
        if name == "heapq.heappush" and spot.alone and spot.statement is not None:
            code = f"{values}.append({item})\n{values}.sort()"
            option = replacing(spot, spot.statement, code, "Sort a plain list", caveat)
        elif name.startswith("bisect.bisect"):
            code = f"sum(v {'<' if name.endswith('left') else '<='} {item} for v in {values})"
            option = replacing(spot, call, code, "Count in Python", caveat)
    return some(hoist(spot, spot.expression), option)


def _imported(spot: Spot) -> tuple[Option, ...]:
    match spot.call:
        case ast.Call(args=[ast.Constant(value=str(module)), *_]) as call if module.isidentifier():
            if module not in spot.local_names():
                line = f"import {module}"
                edits = spot.edits({call: module}, importing=line)
                return (Option("Import it at the top of the file", line, "", edits),)
    return some(hoist(spot, spot.call, ""))


def _settings(spot: Spot) -> tuple[Option, ...]:
    do, caveat = "Set it once, above the function", "It then holds for the whole process, from the start."
    first, text = None, spot.text(spot.expression)
    if spot.alone and spot.expression is not None and spot.hoistable(spot.expression):
        edits = spot.edits({spot.expression: "pass"}, above=text)
        first = Option(do, f"{text}   # above the function", caveat, edits)
    return some(first, around(spot, "Set it in the caller", text if spot.alone else f"value = {text}"))


FAMILIES = {
    "random. numpy.random. torch.manual_seed torch.seed torch.get_rng_state torch.set_rng_state torch.random. "
    "torch.cuda.manual_seed torch.cuda.manual_seed_all torch.initial_seed": plain_rule(
        "uses a random number generator that Dynamo cannot trace",
        "Dynamo knows `random.uniform`, `randint` and `randrange`, and torch's own random operators; "
        "seeding and the others change a state that is not in the graph.", randomness.options),
    "time.sleep": plain_rule(
        "waits while tracing", OUTSIDE, lambda spot: [around(spot, "Wait in the caller", spot.text(spot.expression))]),
    "time. datetime.datetime.now datetime.datetime.utcnow datetime.date.today datetime.datetime.today": plain_rule(
        "reads the clock while tracing", "The time is different in each run; a graph would repeat that of the first.",
        lambda spot: [around(
            spot, "Measure the time around the call of the compiled code", f"start = {spot.text(spot.expression)}",
            "On a GPU synchronize before each reading.", f"elapsed = {spot.text(spot.expression)} - start")]),
    "importlib. __import__": plain_rule(
        "imports a module while tracing",
        "Dynamo traces an `import` statement, but not the machinery behind these functions.", _imported),
    "os.environ os.environ.": plain_rule(
        "uses the environment while tracing",
        "What it holds may be different when the graph runs, and a graph cannot change it.", _environment),
    "os.path. os.getenv os.getpid os.cpu_count os.getcwd pathlib. glob. sys.getsizeof inspect.signature inspect.getsource "
    "inspect.getfile torch.load numpy.load": plain_rule(
        "reads something outside of the graph while tracing",
        "What it reads may be different when the graph runs, so Dynamo does not trace it.", _computed_before),
    "open": plain_rule(
        "opens a file while tracing",
        "A graph holds operations on tensors; files must be read or written before or after it.", _opened),
    "os. shutil. tempfile. io. subprocess. socket. torch.save input sys.stdout.write sys.stderr.write sys.stdout.flush "
    "sys.stderr.flush numpy.save numpy.savez": plain_rule(
        "reaches files, processes or the environment while tracing", OUTSIDE, in_caller),
    "json. pickle. hashlib. base64. struct. zlib. re. decimal. fractions. copyreg. ctypes. datetime. string. codecs.":
        plain_rule(
        "is a library function that Dynamo cannot trace",
        "It runs in C, or in Python code that Dynamo leaves alone, so it is not in the graph.", _computed_before),
    "threading. queue. multiprocessing. concurrent. asyncio. signal. _thread. uuid. secrets.": plain_rule(
        "reaches threads, tasks or the system while tracing", OUTSIDE, in_caller),
    "inspect. traceback. sys. gc. weakref. faulthandler. tracemalloc. resource.": plain_rule(
        "looks at the running interpreter",
        "What runs while a graph is traced is not what runs later, so Dynamo does not trace it.", in_caller),
    "heapq. bisect.": plain_rule(
        "is a C function of the standard library that Dynamo cannot trace",
        "Dynamo follows Python bytecode; a C function has none.", _sorted_structure),
    "torch.set_num_threads torch.set_default_device torch.set_default_dtype torch.backends. torch.use_deterministic_algorithms "
    "torch.set_float32_matmul_precision torch.set_printoptions torch.set_num_interop_threads torch.cuda.empty_cache "
    "torch.cuda.set_device": plain_rule(
        "changes a setting of torch", "The graph is made for the settings at its start.", _settings),
    "warnings.warn warnings.warn_explicit": output.warning,
    "logging.": output.logger_call,
    "numpy.": arrays.numpy_call,
}  # fmt: skip
"""By full names; one that ends in a dot holds a module."""
