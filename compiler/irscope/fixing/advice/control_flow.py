"""Control flow that is not a data-dependent branch: generators, loops, exceptions, imports, builtins."""

from __future__ import annotations

import ast
import contextlib
import re

from irscope.fixing.advice import arrays, calls, output
from irscope.fixing.advice.branches import data_dependent_branch
from irscope.fixing.advice.common import around, called, hoist, int_from_caller, replacing, some
from irscope.fixing.advice.conditions import decision_at, failed_assertion
from irscope.fixing.advice.families import in_caller
from irscope.fixing.advice.model import Advice, Option
from irscope.fixing.advice.spot import Spot
from irscope.fixing.source import loaded_names
from irscope.fixing.syntax import Function, parsed

_BUILTIN = re.compile(r"^builtin (?P<name>\S+)")
_NO_TEXT = "GB0171"
_RAISED = re.compile(r"raised exception (?P<error>.+)")


def builtin(spot: Spot) -> Advice:
    """A builtin function with arguments that Dynamo has no rule for."""
    match = _BUILTIN.match(spot.cause.context)
    name = match["name"] if match else ""
    if name in ("str", "repr", "format") and "Tensor" in spot.cause.explanation:
        return output.text_of_tensor(spot)
    if (advise := _BUILTINS.get(name)) is not None:
        return advise(spot)
    what = f"Dynamo has no rule for the builtin `{name or 'function'}` in {spot.short(spot.expression)}"
    why = spot.cause.explanation
    return Advice(what, why, some(hoist(spot, spot.call), *(in_caller(spot) if spot.alone else ())))


def _range(spot: Spot) -> Advice:
    """``for i in range(n)`` where ``n`` is a tensor."""
    call = spot.call
    count = call.args[-1] if call is not None and call.args else None
    what = f"{spot.short(call)} needs the value of a tensor to know how often to run"
    why = "Loops are unrolled while the graph is traced, so their length must be a Python number."
    if count is None or call is None:
        return Advice(what, why)
    masked = None
    match spot.source.parent(call):
        case ast.For(target=ast.Name(id=step), body=[ast.Assign(targets=[ast.Name(id=target), *_], value=value)]):
            line = f"{target} = torch.where({step} < {spot.text(count)}, {spot.text(value)}, {target})"
            do = "Run to a fixed bound, and change nothing after the end"
            masked = Option(do, f"for {step} in range(MAX_STEPS):\n    {line}") if len(call.args) == 1 else None
    return Advice(what, why, some(int_from_caller(spot, count), masked), count)


def _evaluated(spot: Spot) -> Advice:
    call, name = spot.call, spot.called.rpartition(".")[2]
    what = f"{spot.short(call)} compiles and runs text while tracing"
    why = "Dynamo follows the bytecode of the function, not of text that it makes."
    option, statement = None, spot.statement
    match call:
        case ast.Call(args=[ast.Constant(value=str(text))]):
            with contextlib.suppress(ValueError):  # it is not Python
                parsed(text.strip(), name)
                if name == "eval":
                    option = replacing(spot, call, f"({text.strip()})", "Write the expression itself")
                elif spot.alone and statement is not None and spot.source.owns_lines(statement):
                    option = replacing(spot, statement, text.strip(), "Write the statements themselves")
    return Advice(what, why, some(option))


def _namespace(spot: Spot) -> Advice:
    what = f"{spot.short(spot.call)} asks for the namespace while tracing"
    why = "Names of the function are values of the graph, not entries of a dictionary."
    match spot.source.parent(spot.call):
        case ast.Subscript(slice=ast.Constant(value=str(word))) as entry if word.isidentifier():
            if word not in spot.local_names():
                return Advice(what, why, (replacing(spot, entry, word, "Use the name itself"),))
    return Advice(what, why)


_BUILTINS = {
    "print": output.print_call,
    "range": _range,
    "eval": _evaluated,
    "exec": _evaluated,
    "globals": _namespace,
    "locals": _namespace,
    "open": calls.skipped_call,
    "input": calls.skipped_call,
}


def generator(spot: Spot) -> Advice:
    """A generator function that is compiled itself."""
    function = spot.functions[0] if spot.functions else spot.statement
    name = getattr(function, "name", spot.context.function or "the generator")
    what = f"`{name}` is a generator, which `torch.compile` cannot compile by itself"
    why = "A graph runs from its start to its end; a generator stops at each `yield`."
    names = [arg.arg for arg in function.args.args] if isinstance(function, Function) else []
    is_method = names[:1] == ["self"]
    call = f"{'self.' * is_method}{name}({', '.join(names[is_method:])})"
    code = f"@torch.compile\ndef all_of({', '.join(names)}):\n    return list({call})"
    yields = spot.source.all(ast.Yield, function) if function is not None else []
    value = next((spot.text(node.value) for node in yields if node.value is not None), "...")
    whole = Option("Compile a function that consumes it", code, "All values are computed before the first is used.")
    step = Option("Compile what is done for each value", f"step = torch.compile(step)   # computes {value}")
    return Advice(what, why, (whole, step))


def generator_rebuilt(spot: Spot) -> Advice:
    """Advice for a graph break inside of a running generator."""
    what = f"a graph break falls into {spot.short(spot.expression)}, which is a running generator"
    why = "A generator that has begun cannot be carried over a graph break. Fix the graph break inside, and this one disappears too."
    inner = spot.source.all(ast.GeneratorExp, spot.expression) if spot.expression is not None else []
    lists = [f"[{spot.text(node).removeprefix('(').removesuffix(')')}]" for node in inner[:1]]
    options = [Option("Make it a list", code, "All values are then computed at once.") for code in lists]
    return Advice(what, why, (Option("Fix the graph break inside first"), *options))


def raised(spot: Spot) -> Advice:
    """An exception that leaves the compiled function."""
    match = _RAISED.search(spot.cause.context)
    error = match["error"].split("(")[0] if match else "an exception"
    statement = spot.statement
    if (text := _length_of_text(spot)) is not None:
        return text
    if not isinstance(statement, (ast.Raise, ast.Assert)) and arrays.asks_for_memory(spot.expression) is not None:
        return arrays.storage(spot)
    what = f"{error} is raised here and leaves the compiled code"
    why = "Nothing in the compiled code catches it, so plain Python runs the function again to raise it."
    if isinstance(statement, (ast.Raise, ast.Assert)):
        why += " The code does what it says: this call fails."
    else:
        what = f"while it is traced, this raises {error}, which leaves the compiled code"
        why += " If it does not raise it there, it is an operation that Dynamo treats differently from Python."
    decision, first = spot.source.parent(statement), None
    if isinstance(statement, ast.Raise) and isinstance(decision, ast.If) and statement in decision.body:
        code = f"if {spot.text(decision.test)}:\n    {spot.text(statement)}\nresult = {called(spot)}"
        first = Option("Check it in the caller, before the compiled code", code)
    handler = error if error.isidentifier() else "Exception"
    caught = Option("Catch it inside of the compiled code", f"try:\n    ...\nexcept {handler}:\n    ...")
    return Advice(what, why, some(first, caught))


def _length_of_text(spot: Spot) -> Advice | None:
    """``len(f"{x}")`` and similar calls: Dynamo keeps a text with a tensor in it as something to be made later."""
    call = spot.call
    if call is None or "object of type 'str' has no len()" not in spot.cause.context:
        return None
    what = f"{spot.short(call)} needs a text that holds a tensor's value while tracing"
    why = "The value is not known yet, so Dynamo has neither the text nor its length; plain Python runs the function, where this works."
    names = [name for name in loaded_names(call) if name in spot.local_names()]
    code = f"@torch.compiler.disable\ndef text_length({', '.join(names)}):\n    return {spot.text(call)}"
    apart = Option("Put it into a function that is not compiled", code, "The graph is then cut at this call only.")
    return Advice(what, why, (apart,))


def import_failed(spot: Spot) -> Advice:
    """An ``import`` that fails while tracing."""
    statement, parent = spot.statement, spot.source.parent(spot.statement)
    what = f"{spot.short(statement)} fails"
    why = "The import is run while the graph is traced, and the module or name is not there."
    if not isinstance(statement, (ast.Import, ast.ImportFrom)) or not isinstance(parent, Function):
        return Advice(what, why)
    names = [alias.asname or alias.name.split(".")[0] for alias in statement.names]
    missing = "".join(f"\n    {name} = None" for name in names)
    code = f"try:\n    {spot.text(statement)}\nexcept ImportError:{missing}"
    do = "Import it at the top of the file, where it may be missing"
    caveat = f"Then test `if {names[0]} is not None` before it is used."
    return Advice(what, why, (Option(do, code, caveat, spot.edits({statement: "pass"}, importing=code)),))


def assertion(spot: Spot) -> Advice:
    """An ``assert`` whose message or condition cannot be put into the graph."""
    if decision_at(spot) is not None and spot.cause.code != _NO_TEXT:
        return data_dependent_branch(spot)
    statement = spot.statement
    if isinstance(statement, ast.Assert):
        return failed_assertion(spot, statement)
    if spot.cause.code != _NO_TEXT:
        what = f"{spot.short(statement)} depends on the values of a tensor"
        return Advice(what, spot.cause.explanation, (around(spot, "Check it in the caller", ""),))
    what = f"{spot.short(statement)} carries something that is not a constant text"
    why = "Dynamo follows an AssertionError only with a text that is known while tracing."
    match statement:
        case ast.Raise(exc=ast.Call(args=[text], keywords=[])):
            constant = repr(f"see {spot.text(text)}")
            return Advice(what, why, (replacing(spot, text, constant, "Give it a constant text"),))
    return Advice(what, why)
