"""What a program that names CUDA keeps on the CPU."""

from __future__ import annotations

import ast

from irscope.usercode.kept_on_cpu import MODULE, KeptOnCpu

SOURCE = """\
table = torch.ones(4, device="cpu")
mask = x.cpu()
both = torch.ones(4, device="cpu")
both = torch.ones(4, device="cuda")
summed = torch.ones(4, device="cpu").sum()
moved = x.to("cpu")
on_gpu = torch.ones(4, device="cuda")
with open("cpu") as file:
    first = torch.zeros(
        4,
        device="cpu",
    )

def f(table):
    own = torch.ones(4, device="cpu")
    for own in x:
        pass
    kept = torch.ones(4, device="cpu")
"""


def test_variables_and_lines() -> None:
    found = KeptOnCpu()
    found.visit(ast.parse(SOURCE))
    names = ("table", "mask", "both", "summed", "moved", "on_gpu", "file", "first", "x")
    lines = {name: found.line_of(MODULE, name) for name in names}
    assert {name: line for name, line in lines.items() if line} == {"table": 1, "mask": 2, "moved": 6, "first": 9}
    assert [found.line_of("f", name) for name in ("table", "own", "kept")] == [None, None, 18]
    assert {1, 2, 3, 5, 6, 9, 10, 11, 12, 15, 18} == found.lines - {8}
    assert 7 not in found.lines
