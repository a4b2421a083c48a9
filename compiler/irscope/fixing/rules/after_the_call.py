"""What compiled code makes of its tensors for plain Python, such as a logged number: done by a plain function after it.

The function keeps its name.  It is not compiled, calls the rest, which is compiled as a whole, and does this with what the
rest returns.  What is computed of tensors for it stays in the rest, where that is possible.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from itertools import takewhile

from irscope.fixing.conditions import is_tensor
from irscope.fixing.model import Example, Proposal, Rule
from irscope.fixing.rules.clocks import is_clock
from irscope.fixing.source import Source, changed_names, loaded_names
from irscope.fixing.splitting import can_be_split, is_method, parameters, with_after
from irscope.fixing.syntax import Function, is_docstring, is_simple
from irscope.protocol import Finding, RelatedRole
from irscope.usercode.bindings import last_word
from irscope.usercode.effects import effects_of

_TITLE = "Do it after the compiled code, with what that returns"
_CAVEAT = "A plain function runs around the compiled one, and waits for the values."
_TO_PYTHON = frozenset({"item", "tolist", "numpy"})
_OF_VALUES = frozenset({"float", "int", "bool", "round", "print"})
_APART = (
    ast.IfExp, ast.BoolOp, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.JoinedStr,
)  # fmt: skip
"""What is in them may not be evaluated, or its place in the text is not known."""
_RESULTS = (ast.Return, ast.Tuple, ast.List, ast.Dict)
_OPERATIONS = (ast.Call, ast.BinOp, ast.Compare, ast.UnaryOp, ast.Subscript)


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    callers = [related for related in finding.related if related.role is RelatedRole.CALLER]
    places = [related.range for related in callers if related.file == finding.file]
    breaks, around = source.function_at(finding.range), dict[Function, str]()
    for place in (*places, finding.range):
        node = source.at(place)
        function = source.function(node) if node is not None else None
        if node is None or function is None or not can_be_split(source, function):
            continue  # the outermost function that can be split is the compiled one
        statement = next(outer for outer in source.around(node) if source.parent(outer) is function)
        if statement not in function.body:
            return
        parts = _parts(source, function, statement)
        _, kept, _ = parts
        if kept or not is_method(source, function) or function.decorator_list:
            plain = {**around, breaks: f"@{source.torch}.compiler.disable"} if breaks is not function else around
            yield from _split(source, function, parts, plain)
            return
        around[function] = f"@{source.torch}.compiler.disable(recursive=False)"


_Parts = tuple[list[ast.stmt], list[ast.stmt], list[ast.stmt]]
"""The docstring of a function and readings of clocks at its beginning, what stays compiled, and what is done after it."""


def _split(source: Source, function: Function, parts: _Parts, plain: Mapping[Function, str]) -> Iterator[Proposal]:
    """The text in which some statements are done after the rest, with decorators of functions that become plain, too."""
    leading, kept, moved = parts
    if not _can_be_moved(source, function, moved):
        return
    changes, results, bound = dict[ast.AST, str | None](), dict[str, str](), set[str]()
    for statement in moved:
        for node in _of_tensors(source, statement, bound):
            word = f"{last_word(node.func)}_value" if isinstance(node, ast.Call) else "value"
            changes[node] = results.setdefault(source.code(node), source.fresh(word, results.values()))
        bound |= _changed(source, statement)
    inside = {inner for node in changes for inner in ast.walk(node)}
    read = [name.id for name in source.all(ast.Name, moved) if isinstance(name.ctx, ast.Load) and name not in inside]
    passed = changed_names(*kept) - {*parameters(function)[: is_method(source, function)]}
    given = {name: name for name in read if name in passed}
    given |= {name: code for code, name in results.items()}
    if given:
        text = with_after(source, function, leading, kept, given, source.block_code(moved, changes), plain)
        yield Proposal(_TITLE, _CAVEAT, text, last=True)


def _can_be_moved(source: Source, function: Function, moved: list[ast.stmt]) -> bool:
    """Whether the function returns at its end alone, and no loop is moved that computes something: Dynamo does not compile
    a loop that breaks, but moving it would not repair that."""
    returns, loops = source.all(ast.Return, function.body), source.all((ast.For, ast.While), moved)
    return returns in ([], moved[-1:]) and bool(moved) and not source.all((ast.Assign, ast.AugAssign), loops)


def _parts(source: Source, function: Function, first: ast.stmt) -> _Parts:
    """What is done after the rest: a statement, and what needs it or may act on something."""
    leading = [*takewhile(lambda one: is_docstring(one) or _is_reading(source, one), function.body)]
    rest = function.body[len(leading) :]
    if first in leading:  # then what uses its reading
        names = changed_names(first)
        first = next((one for one in rest if names & {*loaded_names(one)}), first)
    kept, moved = list[ast.stmt](), list[ast.stmt]()
    for statement in rest:
        bound, read = _changed(source, *moved), {name for other in moved for name in loaded_names(other)}
        is_apart = isinstance(statement, ast.Assign) and effects_of(source.tree).is_pure(statement.value)
        is_apart = is_apart and not bound & {*loaded_names(statement)} and not (bound | read) & changed_names(statement)
        is_early = not moved and statement is not first
        (kept if is_early or (moved and is_apart) else moved).append(statement)
    return leading, kept, moved


def _changed(source: Source, *nodes: ast.AST) -> set[str]:
    """The names that code binds, and those of objects on which it calls a method that acts, as `x.add_(1)` does."""
    calls = [call for call in source.all(ast.Call, nodes) if not effects_of(source.tree).is_pure_call(call)]
    objects = [call.func.value for call in calls if isinstance(call.func, ast.Attribute)]
    return changed_names(*nodes) | {place.id for place in objects if isinstance(place, ast.Name)}


def _is_reading(source: Source, statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign) and is_clock(source, statement.value)


def _of_tensors(source: Source, node: ast.AST, bound: set[str]) -> Iterator[ast.expr]:
    """The largest parts that are computed of tensors before anything is made a Python value, and that have no effect."""
    if isinstance(node, _APART) or (isinstance(node, ast.stmt) and not is_simple(node)):
        return
    if isinstance(node, _OPERATIONS) and _is_of_tensors(source, node) and effects_of(source.tree).is_pure(node):
        if not set(loaded_names(node)) & bound:
            yield node
            return
    for child in ast.iter_child_nodes(node):
        yield from _of_tensors(source, child, bound)


def _is_of_tensors(source: Source, node: ast.expr) -> bool:
    calls = source.all(ast.Call, node)
    if any(last_word(call.func) in _TO_PYTHON | _OF_VALUES for call in calls):
        return False
    parent = source.parent(node)
    is_asked = isinstance(parent, ast.Attribute) and parent.attr in _TO_PYTHON
    is_asked |= isinstance(parent, ast.Call) and last_word(parent.func) in _OF_VALUES - {"print"}
    is_result = isinstance(parent, _RESULTS) and isinstance(source.statement(node), ast.Return)
    return is_asked or is_result or is_tensor(source, node)


_EXAMPLES = (
    Example.script("""
          class Net(torch.nn.Module):
        +     @torch.compiler.disable(recursive=False)
              def forward(self, x):
        -         y = x.cos()
        -         return y, {"largest": y.max().item()}
        +         y, max_value = self.forward_before(x)
        +         return y, {"largest": max_value.item()}
        +
        +     def forward_before(self, x):
        +         y = x.cos()
        +         max_value = y.max()
        +         return y, max_value

          net = torch.compile(Net(), backend="eager")
          net(torch.ones(4))
    """),
    Example.script("""
          @torch.compile(backend="eager")
        + def f_before(x):
        +     y = x.detach().cos() * 2
        +     return y
        +
        +
        + @torch.compiler.disable(recursive=False)
          def f(x):
        -     y = x.detach().cos() * 2
        +     y = f_before(x)
              y.requires_grad_(True)
              return y.sin()

          f(torch.ones(4))
    """),
)
RULE = Rule("after the call", ("graph-break",), _propose, examples=_EXAMPLES)
