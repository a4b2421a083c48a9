"""A number of an object that changes from call to call, as a counter or a schedule: read and counted by a plain function.

The attribute stays a Python number.  The function keeps its name, counts, and passes what is computed of the number to the
rest, which is compiled, as a tensor; what is decided by it is passed as a truth value.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from irscope.fixing.model import Example, Proposal, Rule
from irscope.fixing.rules.numbers import changed_number, is_integer
from irscope.fixing.source import Source
from irscope.fixing.splitting import can_be_split, given_parameters, is_method, parameters, with_before
from irscope.fixing.syntax import Function, is_number
from irscope.protocol import Finding

_COUNT = "Count before the compiled code"
_PASS = "Compute the number before the compiled code, and pass it as a tensor"
_TYPED = f"{_PASS} of the same type as `{{}}`"
_CAVEAT = "A plain function runs around the compiled one."
_TENSOR = f"{_CAVEAT} Code that needs a Python number then breaks the graph."
_FUNCTIONS = frozenset({"min", "max", "abs", "float", "int", "round"})


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    number, torch, function = changed_number(finding), source.torch, source.function_at(finding.range)
    if number is None or number.source.count(".") != 1 or not can_be_split(source, function):
        return
    counts = _counts(source, function)
    names = {number.source, *counts}
    reads = _reads(source, function, names)
    is_read_first = any(source.line(read) < source.line(count) for read in reads for count in counts.values())
    if is_read_first or not _is_kept(source, function, names, counts):
        return
    named: dict[str, str] = {}
    for read in reads:
        named.setdefault(source.code(read), source.fresh(_name(read), named.values()))
    passed = {named[source.code(read)]: _passed(source, read, torch, is_integer(number)) for read in reads}
    changes: dict[ast.AST, str | None] = dict.fromkeys(counts.values())
    changes |= {read: named[source.code(read)] for read in reads}
    lines = [source.code_with_comments(count) for count in counts.values()]
    if passed or counts:
        text = with_before(source, function, lines, passed, changes)
        yield Proposal(_PASS if passed else _COUNT, _TENSOR if passed else _CAVEAT, text)
    given = given_parameters(source, function)
    wide = f", dtype={torch}.float64)"
    if given and any(wide in code for code in passed.values()):  # it would widen another tensor of one element
        typed = {name: code.replace(wide, f", dtype={given[0]}.dtype)") for name, code in passed.items()}
        yield Proposal(_TYPED.format(given[0]), _TENSOR, with_before(source, function, lines, typed, changes))


def _counts(source: Source, function: Function) -> dict[str, ast.AugAssign]:
    """The statements that add a constant to a number of an object in each call: ``self.step += 1``; by what they count."""
    counts: dict[str, ast.AugAssign] = {}
    for statement in function.body:
        if source.all((ast.Return, ast.Raise), statement):
            break  # what follows is not done in each call
        match statement:
            case ast.AugAssign(target=ast.Attribute(value=ast.Name())) if is_number(statement.value):
                if source.owns_lines(statement):
                    counts[source.code(statement.target)] = statement
    return counts


def _is_kept(source: Source, function: Function, names: set[str], counts: dict[str, ast.AugAssign]) -> bool:
    """Whether nothing else in the function assigns the numbers or the objects that have them, which are its own or the
    file's."""
    places = source.all((ast.Name, ast.Attribute), function.body)
    targets = [source.code(place) for place in places if isinstance(place.ctx, ast.Store)]  # type: ignore[attr-defined]
    local = set(parameters(function)[is_method(source, function) :])
    heads = {name.partition(".")[0] for name in names}
    counted = [target for target in targets if target in names]
    return sorted(counted) == sorted(counts) and not heads & {*local, *targets}


def _reads(source: Source, function: Function, names: set[str]) -> list[ast.expr]:
    """The largest expressions that are computed of the numbers, and of constants, alone."""
    reads: list[ast.expr] = []
    for attribute in source.all(ast.Attribute, function.body):
        if source.code(attribute) in names and isinstance(attribute.ctx, ast.Load):
            plain = itertools.takewhile(lambda outer: _is_plain(source, outer, names), source.around(attribute))
            reads.append([outer for outer in plain if isinstance(outer, ast.expr)][-1])
    return list(dict.fromkeys(reads))


def _is_plain(source: Source, node: ast.AST, names: set[str]) -> bool:
    """Whether an expression is arithmetic of numbers, as far as its text says so."""
    match node:
        case ast.Attribute():
            return source.code(node) in names or _is_set_once(source, node)
        case ast.Name(id=name):
            return name in source.constants
        case ast.Call(func=function, args=args, keywords=keywords):
            name = source.full_name(function)
            is_function = (name in _FUNCTIONS or name.startswith("math.")) and all(keyword.arg for keyword in keywords)
            return is_function and all(_is_plain(source, value, names) for value in (*args, *keywords))
        case ast.keyword(value=value):
            return _is_plain(source, value, names)
        case ast.BinOp() | ast.UnaryOp() | ast.Compare() | ast.BoolOp():
            parts = [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
            return all(_is_plain(source, part, names) for part in parts)
    return is_number(node)


def _is_set_once(source: Source, node: ast.Attribute) -> bool:
    """Whether it is a setting: ``self.warmup``, which only the constructor assigns, a number or what it was given."""
    same = [other for other in source.all(ast.Attribute) if other.attr == node.attr]
    match [source.parent(other) for other in same if isinstance(other.ctx, ast.Store)]:
        case [ast.Assign(targets=[_], value=value) as assign] if isinstance(value, ast.Name) or is_number(value):
            function = source.function(assign)
            return isinstance(node.value, ast.Name) and function is not None and function.name == "__init__"
    return False


def _name(read: ast.expr) -> str:
    """A name for what is passed."""
    word = next(node.attr for node in ast.walk(read) if isinstance(node, ast.Attribute))
    return word if isinstance(read, ast.Attribute) else f"from_{word}"


def _passed(source: Source, read: ast.expr, torch: str, is_int: bool) -> str:
    """What is passed: a truth value, or a tensor of one element, with which other tensors keep their types."""
    code = source.code(read)
    if isinstance(read, (ast.Compare, ast.BoolOp)) or (isinstance(read, ast.UnaryOp) and isinstance(read.op, ast.Not)):
        return code
    settings = {source.code(attribute) for attribute in source.all(ast.Attribute, read)}
    is_float = any(map(_gives_float, ast.walk(read)))
    dtype = "" if is_int and not is_float and len(settings) == 1 else f", dtype={torch}.float64"
    return f"{torch}.tensor({code}{dtype})"


def _gives_float(node: ast.AST) -> bool:
    """Whether a part of an expression may make a float of an integer."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) or (isinstance(node.func, ast.Name) and node.func.id == "float")
    return isinstance(node, (ast.Div, ast.Pow)) or (isinstance(node, ast.Constant) and isinstance(node.value, float))


_EXAMPLES = (
    Example.script("""
          class Net(torch.nn.Module):
              step = 0

        +     @torch.compiler.disable(recursive=False)
              def forward(self, x):
                  self.step += 1
        -         return x * self.step
        +         return self.forward_after(x, torch.tensor(self.step))
        +
        +     def forward_after(self, x, step_2):
        +         return x * step_2

          net = torch.compile(Net(), backend="eager")
          for _ in range(3):
              net(torch.ones(4))
    """),
    Example.script("""
          class Net(torch.nn.Module):
              step = 0

        +     @torch.compiler.disable(recursive=False)
              def forward(self, x):
        -         return x * min(self.step / 10, 1.0)
        +         return self.forward_after(x, torch.tensor(min(self.step / 10, 1.0), dtype=x.dtype))
        +
        +     def forward_after(self, x, from_step):
        +         return x * from_step

          module = Net()
          net = torch.compile(module, backend="eager")
          for module.step in range(3):
              net(torch.ones(4))
    """),
)
RULE = Rule("counters", ("recompilation",), _propose, ("recompile-value",), examples=_EXAMPLES)
