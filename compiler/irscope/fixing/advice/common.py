"""Ways out that fit many breaks."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable

from irscope.fixing.advice.model import Advice, Option
from irscope.fixing.advice.spot import Spot
from irscope.fixing.source import loaded_names
from irscope.fixing.splitting import is_method, parameters
from irscope.protocol import Edit, FixMethod
from irscope.usercode.bindings import last_word
from irscope.usercode.effects import effects_of

SAME_EACH_CALL = "It is then the same in every call."
_FILLED = re.compile(
    r"io\.(BytesIO|StringIO)|collections\.(Counter|OrderedDict|defaultdict|deque)|(builtins\.)?(bytearray|dict|iter|list|set)"
)
"""What is made to be filled or used up: made once, it would grow with each call."""
ONCE_PER_VALUE = "The function is compiled once for each value."


def plain_rule(what: str, why: str, options: Callable[[Spot], Iterable[Option | None]]) -> Callable[[Spot], Advice]:
    """A rule that says the same of each line; ``what`` follows the line's expression.  An empty ``why`` is PyTorch's."""

    def advise(spot: Spot) -> Advice:
        made = tuple(option for option in options(spot) if option is not None)
        return Advice(f"{spot.short(spot.expression or spot.statement)} {what}", why or spot.cause.explanation, made)

    return advise


def setting(spot: Spot, name: str, caveat: str, do: str = "Let Dynamo put it into the graph", *needs: str) -> Option:
    """Turns on a setting of ``torch._dynamo.config`` at the top of the user's file; ``needs`` are further modules."""
    code, source = f"{spot.home.torch}._dynamo.config.{name}", spot.home.source
    edits = source.edits({}, [source.setting(code, *needs, "torch")])
    return Option(f"{do}, once at the top of the file", code, caveat, edits, anywhere=True)


def replacing(spot: Spot, node: ast.expr | ast.stmt, code: str, do: str | FixMethod, caveat: str = "") -> Option:
    """Puts code in the place of an expression or a statement."""
    shown = spot.line_with(node, code) if isinstance(node, ast.expr) else code
    return option(do, shown, caveat, spot.edits({node: code}))


def option(do: str | FixMethod, code: str = "", caveat: str = "", edits: tuple[Edit, ...] = ()) -> Option:
    """An option with a title, or with that of a method."""
    if isinstance(do, FixMethod):
        return Option(do.title, code, caveat, edits, method=do)
    return Option(do, code, caveat, edits)


def guard(spot: Spot, caveat: str) -> Option | None:
    """Leaves output out while compiling.  None for all else: nobody can know that no other effect is missed."""
    statement, function = spot.statement, spot.functions[0] if spot.functions else None
    in_lambda = isinstance(function, ast.Lambda) and function.body is spot.expression
    written = spot.expression if in_lambda else getattr(statement, "value", None)
    if not (in_lambda or isinstance(statement, ast.Expr)) or written is None:
        return None
    if not effects_of(spot.source.tree).only_writes(written):
        return None
    asked = f"{spot.torch}.compiler.is_compiling()"
    if in_lambda or statement is None or not spot.source.owns_lines(statement):
        return replacing(spot, written, f"None if {asked} else {spot.text(written)}", FixMethod.LEAVE_OUT, caveat)
    body = spot.source.code(statement).replace("\n", "\n    ")
    return replacing(spot, statement, f"if not {asked}:\n    {body}", FixMethod.LEAVE_OUT, caveat)


def hoist(spot: Spot, node: ast.expr | None, caveat: str = SAME_EACH_CALL, as_list: bool = False) -> Option | None:
    """Computes an expression once, above the function; None if it needs something local.

    ``as_list`` is for what a loop runs over: an iterator would be used up by the first call.
    """
    if node is None or not spot.hoistable(node) or not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
        return None
    made = spot.source.full_name(node.func) if isinstance(node, ast.Call) else ""
    if _FILLED.fullmatch(made) or isinstance(node, (ast.List, ast.Dict, ast.Set, ast.GeneratorExp)):
        return None
    word = assigned_name(spot.source.parent(node)) or last_word(node.func if isinstance(node, ast.Call) else node)
    name = spot.source.fresh(f"_{(word.strip('_') or 'value').upper()}")
    line = f"{name} = list({spot.text(node)})" if as_list else f"{name} = {spot.text(node)}"
    code = f"{line}   # above the function\n{spot.line_with(node, name)}"
    return option(FixMethod.COMPUTE_ONCE, code, caveat, spot.edits({node: name}, above=line))


def assigned_name(statement: ast.AST | None) -> str:
    """The name that a statement assigns to first; empty if it does not."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    return target.id if isinstance(target, ast.Name) else ""


def around(spot: Spot, do: str, before: str, caveat: str = "", after: str = "") -> Option:
    """An example for the place that calls the compiled function; without code where ``before`` holds local names."""
    head, indent = (f"{before} pass", "    ") if before.endswith(":") else (before, "")
    if spot.inner_names(ast.parse(head)) or not before + after:
        return Option(do, "", caveat)
    return Option(do, "\n".join(filter(None, [before, f"{indent}result = {called(spot)}", after])), caveat)


def called(spot: Spot, *passed: str) -> str:
    """How the function at hand is called, for an example; with what it does not take yet."""
    function = next((f for f in reversed(spot.functions) if not isinstance(f, ast.Lambda)), None)
    if function is None or function.name.startswith("__"):
        return f"compiled({', '.join(['...', *passed])})"
    in_class = is_method(spot.source, function)
    name = "model" if in_class and function.name == "forward" else function.name
    return f"{name}({', '.join([*parameters(function)[in_class:], *passed])})"


def pass_in(spot: Spot, node: ast.expr | None, caveat: str = ONCE_PER_VALUE, form: str = "{}") -> Option | None:
    """Computes a value in the caller and hands it over as an argument; None if it is made of local names."""
    name = assigned_name(spot.source.parent(node)) or "value"
    return _handed_over(spot, node, "Compute it {} and pass it in", name, caveat, form)


def decide_in_caller(spot: Spot, test: ast.expr | None) -> Option | None:
    """The decision as an argument, if it depends on arguments, and on nothing that is local."""
    if test is None or not set(loaded_names(test)) & _arguments(spot) - {"self"}:
        return None
    do = "Decide {} and pass a Python bool in"
    return _handed_over(spot, test, do, spot.source.fresh("flag"), ONCE_PER_VALUE, "bool({})")


def int_from_caller(spot: Spot, count: ast.expr) -> Option | None:
    """A number of steps that is an argument, or made of arguments."""
    names = set(loaded_names(count))
    if not names or not names <= _arguments(spot):
        return None
    name, caveat = spot.source.fresh("count"), "The function is compiled again for each number."
    return _handed_over(spot, count, "Pass a Python int in", name, caveat, "int({})")


def _arguments(spot: Spot) -> set[str]:
    return {arg.arg for arg in spot.source.all(ast.arg, spot.functions[-1].args)} if spot.functions else set()


def _handed_over(spot: Spot, node: ast.expr | None, do: str, name: str, caveat: str, form: str) -> Option | None:
    """What the caller does, in place of an argument where it is one already; ``form`` has braces for the value, ``do`` for
    who the caller is.  None in what PyTorch calls: a function's own backward."""
    if node is None or not spot.functions or spot.inner_names(node) or "ctx" in _arguments(spot):
        return None
    if spot.context.inlined:  # its caller is compiled, too: there it would break again
        made = f"{name} = {form.format(spot.text(node))}"
        return Option(do.format("before the compiled function is called"), made, caveat)
    do = do.format("in the caller")
    given, passed = spot.text(node), [name]
    if form != "{}" and isinstance(node, ast.Name):
        name, passed = given, []
    return Option(do, f"{name} = {form.format(given)}\nresult = {called(spot, *passed)}", caveat)


def without_keyword(spot: Spot, call: ast.Call, name: str) -> str:
    """The code of a call without one of its keyword arguments."""
    keywords = [keyword for keyword in call.keywords if keyword.arg != name]
    given = [*map(spot.text, call.args), *map(spot.text, keywords)]
    return f"{spot.text(call.func)}({', '.join(given)})"


def custom_op(spot: Spot, call: ast.Call | None) -> Option | None:
    """Makes a function of tensors an operator that the compiler calls without looking into it."""
    if call is None or not isinstance(call.func, (ast.Name, ast.Attribute)):
        return None
    name, local = last_word(call.func), spot.local_names()
    names = list(dict.fromkeys(n for arg in call.args for n in loaded_names(arg) if n in local))
    if not names or "self" in loaded_names(call) or name.startswith("__") or spot.source.all(ast.Starred, call):
        return None
    do = f"Make `{name}` an operator that the graph calls as a whole"
    caveat = "For a function of tensors that returns a new tensor; its `register_fake` gives the shape and dtype of the result, and training needs `register_autograd`."
    return Option(do, f"torch.library.custom_op('mylib::{name}', ...)", caveat)


def some(*options: Option | None) -> tuple[Option, ...]:
    """The options that apply."""
    return tuple(option for option in options if option is not None)
