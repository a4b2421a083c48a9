"""Loops whose turns end early, by values of tensors: all turns are computed, and what does not count is not kept.

``if (new - x).abs().max() < 1e-3: break`` freezes what the loop computes; ``if not keep[i]: continue`` leaves out the rest of
one turn.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from irscope.fixing.choosing import chosen
from irscope.fixing.edits import statements
from irscope.fixing.model import OF_VALUES, Example, Proposal, Rule
from irscope.fixing.predication import Flat, Flattening, assignments, bound_before
from irscope.fixing.source import Source
from irscope.protocol import Finding

_BREAK_TITLE = "Compute all turns of the loop, and keep what was there when it ends"
_CONTINUE_TITLE = "Compute all of each turn, and choose by value whether it counts"
_CAVEAT = "Turns that do not count are computed, too."
_ODD = (
    ast.Return, ast.Break, ast.Continue, ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal, ast.Delete,
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.NamedExpr, ast.Try, ast.With, ast.AsyncWith, ast.For,
    ast.AsyncFor, ast.While,
)  # fmt: skip


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    decision = source.first_around(source.at(finding.range), ast.If)
    loop = source.parent(decision) if decision is not None else None
    if decision is None or not isinstance(loop, ast.For) or source.function(loop) is None:
        return
    end = decision.body[-1]
    if decision.orelse or loop.orelse or not isinstance(end, (ast.Break, ast.Continue)):
        return
    if source.all(_ODD, loop.body) != [end]:
        return
    text = _flattened(source, loop, decision, source.torch)
    yield Proposal(_BREAK_TITLE if isinstance(end, ast.Break) else _CONTINUE_TITLE, _CAVEAT, text)


def _flattened(source: Source, loop: ast.For, decision: ast.If, torch: str) -> str:
    """The text with straight code in the loop.  Raises ValueError if that is not possible."""
    ends = isinstance(decision.body[-1], ast.Break)  # the loop, not only the turn
    bound, number = bound_before(source, loop), loop.body.index(decision)
    flattening, flat = Flattening(source, torch, bound), Flat()
    count = number
    if ends:  # what only this turn has stays, as does what comes before a continue
        count = next((n for n, node in enumerate(loop.body[:number]) if not _is_local(source, node, bound)), number)
    flat = flattening.block(loop.body[count:number], {})
    stop = flattening.named(flat, "stop" if ends else "skipped", decision.test)
    test, own = ast.Name(stop, ast.Load()), decision.body[:-1] or [ast.Pass()]
    flattening.decide(flat, ast.If(test, own, []), loop.body[number + 1 :])
    values = {name: value for name, value in flat.values.items() if name in bound and value != name}
    local = {name.id for name in assignments(source, loop)} - bound
    if not values or any("." in name for name in flat.values) or local & _read_outside(source, loop):
        raise ValueError("what the loop does is not only to give names values")
    going = source.fresh("going")
    if ends:
        values = {name: chosen(torch, going, value, name) for name, value in values.items()}
    lines = [*flat.lines, f"{', '.join(values)} = {', '.join(values.values())}"]
    more = []
    if ends:
        lines.append(f"{going} = {going} & ~{stop}")
        device = f"{next(iter(values))}.device"
        more.append(source.before(loop, f"{going} = {torch}.ones((), dtype={torch}.bool, device={device})"))
    straight = statements(source, source.range(*loop.body[count:]), "\n".join(lines))
    return source.changed({}, [*more, straight])


def _is_local(source: Source, statement: ast.stmt, bound: frozenset[str]) -> bool:
    """Whether a statement only gives names a value that have none before the loop."""
    if not isinstance(statement, ast.Assign):
        return False
    is_plain = all(isinstance(target, (ast.Name, ast.Tuple)) for target in statement.targets)
    return is_plain and not {name.id for name in source.all(ast.Name, statement.targets)} & bound


def _read_outside(source: Source, loop: ast.For) -> set[str]:
    """The names in the function outside of the loop."""
    function, inside = source.function(loop), set(source.all(ast.Name, loop))
    return {name.id for name in source.all(ast.Name, function) if name not in inside}


_EXAMPLES = (
    Example.body("""
        + going = torch.ones((), dtype=torch.bool, device=x.device)
          for _ in range(3):
        -     x = x / 2
        -     if x.max() < 1:
        -         break
        +     stop = (x / 2).max() < 1
        +     x = torch.where(going, x / 2, x)
        +     going = going & ~stop
          return x
    """),
    Example.body("""
          for n in range(3):
        -     if x[n] < 1:
        -         continue
        -     x = x / 2
        +     skipped = x[n] < 1
        +     x = torch.where(skipped, x, x / 2)
          return x
    """),
)
RULE = Rule("loop exits", ("graph-break",), _propose, OF_VALUES, examples=_EXAMPLES)
