"""Python's random numbers in the forms that Dynamo traces; the numbers and the generator's state stay the same."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from irscope.fixing.model import Example, Proposal, Rule
from irscope.fixing.source import Source
from irscope.fixing.syntax import is_number
from irscope.protocol import Finding, FixMethod


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    torch = source.module_name("torch")
    for call in source.on_line(finding.range.start.line, ast.Call):
        name, code = source.full_name(call.func), traced(source, call)
        if code is not None:
            yield Proposal("Draw it with a function that Dynamo traces", "", source.changed({call: code}))
        match call.args:
            case [ast.List(elts=items) | ast.Tuple(elts=items) as numbers] if items and all(map(is_number, items)):
                if name == "random.choice" and code and torch:
                    index = f"{torch}.randint({len(items)}, ())"
                    yield _in_graph(source, call, f"{torch}.tensor({source.code(numbers)})[{index}]")
        if name in ("random.random", "random.uniform") and torch and isinstance(source.parent(call), ast.Compare):
            yield _in_graph(source, call, f"{torch}.rand(())")  # a layer that is skipped; the branch is the next break


def traced(source: Source, call: ast.Call) -> str | None:
    """A call that draws the same number by a function that Dynamo traces; None if there is none."""
    name, random = source.full_name(call.func), source.code(call.func).rpartition(".")[0]
    match call:
        case ast.Call() if name == "random.random" and random:
            return f"{random}.uniform(0.0, 1.0)"
        case ast.Call(args=[ast.List() | ast.Tuple() as items], keywords=[]) if name == "random.choice" and random:
            return f"{source.code(items)}[{random}.randrange({len(items.elts)})]"
        case ast.Call(args=[ast.Name() | ast.Attribute() as items], keywords=[]) if name == "random.choice" and random:
            return f"{source.code(items)}[{random}.randrange(len({source.code(items)}))]"
    return None


def _in_graph(source: Source, call: ast.Call, code: str) -> Proposal:
    caveat = "Python's generator does not move on: other numbers are drawn."
    return Proposal(FixMethod.DRAW_FROM_TORCH, caveat, source.changed({call: code}))


_EXAMPLES = (
    Example("return x * random.random()", "return x * random.uniform(0.0, 1.0)", above="import random"),
    Example(
        "return x * random.choice(SCALES)",
        "return x * SCALES[random.randrange(len(SCALES))]",
        above="import random\n\nSCALES = [1.0, 2.0]",
    ),
    Example(
        "return x * random.choice([1.0, 2.0])",
        "return x * torch.tensor([1.0, 2.0])[torch.randint(2, ())]",
        above="import random",
    ),
)
RULE = Rule("random numbers", ("graph-break",), _propose, ("GB0007", "GB0033", "GB0363"), examples=_EXAMPLES)
