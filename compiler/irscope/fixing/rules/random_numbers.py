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
        name = source.full_name(call.func)
        random = source.code(call.func).rpartition(".")[0]
        if name == "random.random" and random:
            yield _traced(source, call, f"{random}.uniform(0.0, 1.0)")
        if name == "random.choice" and random and len(call.args) == 1 and not call.keywords:
            yield from _choice(source, call, random, torch)
        if name in ("random.random", "random.uniform") and torch and isinstance(source.parent(call), ast.Compare):
            yield _in_graph(source, call, f"{torch}.rand(())")  # a layer that is skipped; the branch is the next break


def _choice(source: Source, call: ast.Call, random: str, torch: str | None) -> Iterator[Proposal]:
    items, text = call.args[0], source.code(call.args[0])
    if isinstance(items, (ast.List, ast.Tuple)):
        count = len(items.elts)
        yield _traced(source, call, f"{text}[{random}.randrange({count})]")
        if torch and items.elts and all(map(is_number, items.elts)):
            yield _in_graph(source, call, f"{torch}.tensor({text})[{torch}.randint({count}, ())]")
    elif isinstance(items, (ast.Name, ast.Attribute)):
        yield _traced(source, call, f"{text}[{random}.randrange(len({text}))]")


def _traced(source: Source, call: ast.Call, code: str) -> Proposal:
    return Proposal("Draw it with a function that Dynamo traces", "", source.changed({call: code}))


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
