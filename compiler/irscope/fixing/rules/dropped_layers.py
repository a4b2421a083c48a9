"""Layers that are skipped by a random number (LayerDrop): the layer is computed, and what it gives is chosen or not."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from irscope.fixing.model import Example, Proposal, Rule
from irscope.fixing.source import Source, loaded_names
from irscope.protocol import Finding

_TITLE = "Compute the layer, and choose by value whether it counts"
_CAVEAT = (
    "A skipped layer is computed, too, and draws its random numbers. Its parameters get a gradient of zero, not None, "
    "which optimizers with momentum or weight decay treat differently."
)


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    decision = source.first_around(source.at(finding.range), ast.If)
    loop = source.first_around(decision, ast.For)
    if decision is None or loop is None:
        return
    for text in (_continued(source, decision, loop, source.torch), _flagged(source, loop, source.torch)):
        if text is not None:
            yield Proposal(_TITLE, _CAVEAT, text)


def _continued(source: Source, decision: ast.If, loop: ast.For, torch: str) -> str | None:
    """``if p < drop: continue``, directly or below one other ``if``, and after it one assignment."""
    if decision.orelse or not isinstance(_only(decision), ast.Continue):
        return None
    outer: ast.stmt = decision
    while (around := source.parent(outer)) is not loop:
        if not isinstance(around, ast.If) or around.orelse:
            return None
        outer = around
    rest = source.following(outer)
    name = _assigned(rest[0]) if len(rest) == 1 else None
    if name is None:
        return None
    skipped, before = source.fresh("skipped"), source.fresh(f"{name}_before")
    choice = f"if {skipped} is not None:\n    {name} = {torch}.where({skipped}, {before}, {name})"
    more = [source.before(rest[0], f"{before} = {name}"), source.after(rest[0], choice)]
    if outer is not decision:
        more.append(source.before(outer, f"{skipped} = None"))
    return source.changed({decision: f"{skipped} = {source.code(decision.test)}"}, more)


def _flagged(source: Source, loop: ast.For, torch: str) -> str | None:
    """A flag that is False, or set where a random number is small; then ``if not flag:`` and one assignment below it."""
    conditions = [node for node in source.all(ast.If, loop.body) if not node.orelse]
    uses = [node for node in conditions if _flag(node)]
    if len(uses) != 1:
        return None
    use, flag, layer = uses[0], _flag(uses[0]), _only(uses[0])
    name = _assigned(layer) if layer is not None else None
    if layer is None or name is None:
        return None
    setting = [node for node in conditions if _value_of(_only(node), flag) == "True"]
    values = [value for node in source.all(ast.Assign, loop.body) if (value := _value_of(node, flag)) is not None]
    compares = any(isinstance(ast.parse(value, mode="eval").body, ast.Compare) for value in values)
    if len(values) != 2 or "False" not in values or not (compares or setting):
        return None
    others = use.test.values[1:] if isinstance(use.test, ast.BoolOp) else []
    test = " and ".join([f"{flag} is not False", *(f"not {source.code(other)}" for other in others)])
    before = source.fresh(f"{name}_before")
    choice = f"if {test}:\n    {name} = {torch}.where({flag}, {before}, {name})"
    changes: dict[ast.AST, str | None] = {node: f"{flag} = {source.code(node.test)}" for node in setting}
    changes[use] = f"{before} = {name}\n{source.code(layer)}\n{choice}"
    return source.changed(changes)


def _flag(node: ast.If) -> str:
    """The name in ``if not flag:`` or ``if not flag or other:``, where the others are plain names; else empty."""
    is_or = isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.Or)
    match node.test.values if is_or else [node.test]:  # type: ignore[attr-defined]
        case [ast.UnaryOp(op=ast.Not(), operand=ast.Name(id=flag)), *others]:
            return flag if all(isinstance(other, ast.Name) for other in others) else ""
    return ""


def _value_of(statement: ast.stmt | None, name: str) -> str | None:
    """What a statement assigns to a name, and to nothing else."""
    if not isinstance(statement, ast.Assign) or [ast.unparse(target) for target in statement.targets] != [name]:
        return None
    return ast.unparse(statement.value)


def _only(node: ast.If) -> ast.stmt | None:
    """The one statement below an ``if``; None if there are several."""
    return node.body[0] if len(node.body) == 1 else None


def _assigned(statement: ast.stmt) -> str | None:
    """The name that a statement assigns what is called with it: ``x = layer(x)``."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call) if name in loaded_names(call):
            return name
    return None


def _example(diff: str) -> Example:
    return Example.body(diff, above="layers = [torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)]")


_EXAMPLES = (
    _example("""
          for layer in layers:
        -     if torch.rand([]) < 0.5:
        -         continue
        +     skipped = torch.rand([]) < 0.5
        +     x_before = x
              x = layer(x)
        +     if skipped is not None:
        +         x = torch.where(skipped, x_before, x)
          return x
    """),
    _example("""
          for layer in layers:
              drop = False
        -     if torch.rand([]) < 0.5:
        -         drop = True
        -     if not drop:
        -         x = layer(x)
        +     drop = torch.rand([]) < 0.5
        +     x_before = x
        +     x = layer(x)
        +     if drop is not False:
        +         x = torch.where(drop, x_before, x)
          return x
    """),
)
RULE = Rule("dropped layers", ("graph-break",), _propose, ("GB0170",), examples=_EXAMPLES)
