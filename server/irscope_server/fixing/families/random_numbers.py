"""Python's random numbers in the forms that Dynamo traces; the numbers and the generator's state stay the same."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m
from irscope.protocol import Finding, FixMethod

from irscope_server.fixing.model import Family, Proposal
from irscope_server.fixing.source import Source


def _propose(source: Source, finding: Finding) -> Iterator[Proposal]:
    for call in source.on_line(finding.range.start.line, cst.Call):
        name = source.full_name(call.func)
        torch = source.module_name("torch")
        random = source.code(call.func).rpartition(".")[0]
        prefix = f"{random}." if random else ""
        if name == "random.random" and prefix:
            yield _as(source, call, f"{prefix}uniform(0.0, 1.0)")
        if name == "random.choice" and prefix and len(call.args) == 1:
            yield from _choice(source, call, prefix)
        if name in ("random.random", "random.uniform") and torch is not None:
            yield from _skipped_layer(source, call, torch)


def _as(source: Source, call: cst.Call, text: str) -> Proposal:
    return Proposal(
        "Draw it with a function that Dynamo traces", "", source.changed({call: cst.parse_expression(text)})
    )


def _choice(source: Source, call: cst.Call, prefix: str) -> Iterator[Proposal]:
    items = call.args[0].value
    text = source.code(items)
    if isinstance(items, (cst.List, cst.Tuple)):
        yield _as(source, call, f"{text}[{prefix}randrange({len(items.elements)})]")
        if items.elements and all(isinstance(one.value, (cst.Float, cst.Integer)) for one in items.elements):
            torch = source.module_name("torch")
            values = f"{torch}.tensor({text})[{torch}.randint({len(items.elements)}, ())]"
            yield Proposal(
                FixMethod.DRAW_FROM_TORCH.title, "Python's generator does not move on: other numbers are drawn.",
                source.changed({call: cst.parse_expression(values)}), method=FixMethod.DRAW_FROM_TORCH,
            )  # fmt: skip
    elif isinstance(items, (cst.Name, cst.Attribute)):
        yield _as(source, call, f"{text}[{prefix}randrange(len({text}))]")


def _skipped_layer(source: Source, call: cst.Call, torch: str) -> Iterator[Proposal]:
    """``if self.training and random.random() < p``: torch's own generator, as a tensor; the branch is the next break."""
    if m.matches(source.parent(call) or call, m.Comparison()):
        yield Proposal(
            FixMethod.DRAW_FROM_TORCH.title, "Python's generator does not move on: other numbers are drawn.",
            source.changed({call: cst.parse_expression(f"{torch}.rand(())")}), method=FixMethod.DRAW_FROM_TORCH,
        )  # fmt: skip


FAMILY = Family("random numbers", ("graph-break",), _propose, ("GB0007", "GB0033", "GB0363"))
