"""Control flow that is not a data-dependent branch: generators, loops, exceptions, imports, builtins."""

from __future__ import annotations

import ast
import re

from irscope.fixing.advice import arrays, calls, contexts, output
from irscope.fixing.advice.branches import data_dependent_branch
from irscope.fixing.advice.common import around, called, hoist, int_from_caller, replacing, some
from irscope.fixing.advice.conditions import decision_at, failed_assertion
from irscope.fixing.advice.families import in_caller
from irscope.fixing.advice.model import Advice, Option
from irscope.fixing.advice.spot import Spot
from irscope.fixing.source import loaded_names

_BUILTIN = re.compile(r"^builtin (?P<name>\S+)")
_NO_TEXT = "GB0171"
_RAISED = re.compile(r"raised exception (?P<error>.+)")


def builtin(spot: Spot) -> Advice:
    """A builtin function with arguments that Dynamo has no rule for."""
    match = _BUILTIN.match(spot.cause.context)
    name = match["name"] if match else ""
    if name == "print":
        return output.print_call(spot)
    if name in ("str", "repr", "format") and "Tensor" in spot.cause.explanation:
        return output.text_of_tensor(spot)
    if name == "range":
        return _range(spot)
    if name in ("eval", "exec"):
        return _evaluated(spot, name)
    if name in ("globals", "locals"):
        return _namespace(spot, name)
    if name == "open" and (told := contexts.opened(spot)) is not None:
        return told
    if name in ("open", "input"):
        return calls.skipped_call(spot)
    what = f"Dynamo has no rule for the builtin `{name or 'function'}` in {spot.short(spot.expression)}"
    why = spot.cause.explanation
    return Advice(
        what,
        why,
        some(hoist(spot, spot.call, "It is then the same in every call."), *(in_caller(spot) if spot.alone else ())),
    )


def _range(spot: Spot) -> Advice:
    """``for i in range(n)`` where ``n`` is a tensor."""
    call = spot.call
    count = call.args[-1] if call is not None and call.args else None
    what = f"{spot.short(call)} needs the value of a tensor to know how often to run"
    why = "Loops are unrolled while the graph is traced, so their length must be a Python number."
    if count is None or call is None:
        return Advice(what, why)
    masked = None
    loop = spot.parent(call)
    if (
        isinstance(loop, ast.For)
        and len(loop.body) == 1
        and isinstance(body := loop.body[0], ast.Assign)
        and len(call.args) == 1
    ):
        if isinstance(body.targets[0], ast.Name) and isinstance(loop.target, ast.Name):
            target, step = body.targets[0].id, loop.target.id
            line = f"{target} = torch.where({step} < {spot.text(count)}, {spot.text(body.value)}, {target})"
            masked = Option(
                "Run to a fixed bound, and change nothing after the end",
                f"for {step} in range(MAX_STEPS):\n    {line}",
            )
    passed = int_from_caller(spot, count)
    return Advice(what, why, some(passed, masked), count)


def _evaluated(spot: Spot, name: str) -> Advice:
    call = spot.call
    what = f"{spot.short(call)} compiles and runs text while tracing"
    why = "Dynamo follows the bytecode of the function, not of text that it makes."
    text = call.args[0] if call is not None and len(call.args) == 1 else None
    option = None
    if call is not None and isinstance(text, ast.Constant) and isinstance(text.value, str):
        code = text.value.strip()
        try:
            ast.parse(code, mode="eval" if name == "eval" else "exec")
        except SyntaxError:
            return Advice(what, why)
        if name == "eval":
            option = replacing(spot, call, f"({code})", "Write the expression itself")
        elif spot.alone and spot.statement is not None and spot.source.owns_lines(spot.statement):
            option = replacing(spot, spot.statement, code, "Write the statements themselves")
    return Advice(what, why, some(option))


def _namespace(spot: Spot, name: str) -> Advice:
    call = spot.call
    what = f"{spot.short(call)} asks for the namespace while tracing"
    why = "Names of the function are values of the graph, not entries of a dictionary."
    option = None
    parent = spot.parent(call) if call is not None else None
    if (
        isinstance(parent, ast.Subscript)
        and isinstance(parent.slice, ast.Constant)
        and isinstance(parent.slice.value, str)
    ):
        word = parent.slice.value
        if word.isidentifier() and word not in spot.local_names():
            option = replacing(spot, parent, word, "Use the name itself")
    return Advice(what, why, some(option))


def generator(spot: Spot) -> Advice:
    """A generator function that is compiled itself."""
    function = spot.functions[0] if spot.functions else spot.statement
    name = getattr(function, "name", spot.context.function or "the generator")
    what = f"`{name}` is a generator, which `torch.compile` cannot compile by itself"
    why = "A graph runs from its start to its end; a generator stops at each `yield`."
    call = called(spot)
    if isinstance(function, ast.FunctionDef) and not spot.functions:
        call = f"{name}({', '.join(arg.arg for arg in function.args.args)})"
    takes = call.partition("(")[2]
    if takes.startswith("self"):
        call = f"self.{name}({takes.removeprefix('self').removeprefix(', ')}"
    code = f"@torch.compile\ndef all_of({takes}:\n    return list({call})"
    yields = spot.source.all(ast.Yield, function) if function is not None else []
    values = [node.value for node in yields if node.value is not None]
    body = spot.text(values[0]) if values else "..."
    return Advice(
        what, why,
        (
            Option("Compile a function that consumes it", code, "All values are computed before the first is used."),
            Option("Compile what is done for each value", f"step = torch.compile(step)   # computes {body}"),
        ),
    )  # fmt: skip


def generator_rebuilt(spot: Spot) -> Advice:
    """Advice for a graph break inside of a running generator."""
    what = f"a graph break falls into {spot.short(spot.expression)}, which is a running generator"
    why = "A generator that has begun cannot be carried over a graph break. Fix the graph break inside, and this one disappears too."
    node = spot.expression
    inner = next((n for n in ast.walk(node) if isinstance(n, ast.GeneratorExp)), None) if node is not None else None
    option = None
    if inner is not None:
        text = spot.text(inner)
        text = text if text.startswith("(") else f"({text})"
        option = Option("Make it a list", f"[{text[1:-1]}]", "All values are then computed at once.")
    return Advice(what, why, some(Option("Fix the graph break inside first"), option))


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
    test = _test_of(spot, statement)
    first = None
    if test is not None and isinstance(statement, ast.Raise):
        code = f"if {test}:\n    {spot.text(statement)}\nresult = {called(spot)}"
        first = Option("Check it in the caller, before the compiled code", code)
    handler = error if error.isidentifier() else "Exception"
    caught = Option("Catch it inside of the compiled code", f"try:\n    ...\nexcept {handler}:\n    ...")
    return Advice(what, why, some(first, caught))


def _length_of_text(spot: Spot) -> Advice | None:
    """``len(f"{x}")`` and its like: Dynamo keeps a text with a tensor in it as something to be made later."""
    call = spot.call
    if call is None or "object of type 'str' has no len()" not in spot.cause.context:
        return None
    what = f"{spot.short(call)} needs a text that holds a tensor's value while tracing"
    why = "The value is not known yet, so Dynamo has neither the text nor its length; plain Python runs the function, where this works."
    names = [name for name in loaded_names(call) if name in spot.local_names()]
    code = f"@torch.compiler.disable\ndef text_length({', '.join(names)}):\n    return {spot.text(call)}"
    apart = Option("Put it into a function that is not compiled", code, "The graph is then cut at this call only.")
    return Advice(what, why, (apart,))


def _test_of(spot: Spot, statement: ast.stmt | None) -> str | None:
    parent = spot.parent(statement) if statement is not None else None
    return spot.text(parent.test) if isinstance(parent, ast.If) and statement in parent.body else None


def import_failed(spot: Spot) -> Advice:
    """An ``import`` that fails while tracing."""
    statement = spot.statement
    what = f"{spot.short(statement)} fails"
    why = "The import is run while the graph is traced, and the module or name is not there."
    option = None
    if isinstance(statement, (ast.Import, ast.ImportFrom)) and isinstance(spot.parent(statement), ast.FunctionDef):
        names = [alias.asname or alias.name.split(".")[0] for alias in statement.names]
        text = spot.text(statement)
        code = "\n".join(["try:", f"    {text}", "except ImportError:", *(f"    {name} = None" for name in names)])
        option = Option(
            "Import it at the top of the file, where it may be missing",
            code,
            f"Then test `if {names[0]} is not None` before it is used.",
            spot.edits({statement: "pass"}, spot.importing(code)),
        )
    return Advice(what, why, some(option))


def in_loop(spot: Spot) -> Advice:
    """A loop with a break in it, without the break itself."""
    what = f"{spot.short(spot.expression or spot.statement)} breaks the graph inside of a loop"
    why = "A graph that is cut inside of a loop cannot go on in it, so the whole function runs as plain Python."
    code = "for ... in ...:\n    step(...)   # compiled on its own: step = torch.compile(step)"
    return Advice(what, why, (Option("Compile what the loop does, not the loop", code),))


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
    raised = statement.exc if isinstance(statement, ast.Raise) else None
    option = None
    if isinstance(raised, ast.Call) and len(raised.args) == 1 and not raised.keywords:
        text = repr(f"see {spot.text(raised.args[0])}")
        option = replacing(spot, raised.args[0], text, "Give it a constant text")
    return Advice(what, why, some(option))


def iterated(spot: Spot) -> Advice:
    """``next(it)`` and ``for x in it`` over an iterator that Dynamo does not know."""
    return calls.stepped(spot)
