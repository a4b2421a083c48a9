"""The arguments of a compiled function are looked at without the script seeing it."""

from __future__ import annotations

from pathlib import Path

from support import run_forked, run_plain, write

SCRIPT = """
import torch
from torch.overrides import TorchFunctionMode

seen = []


class Mode(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        seen.append(getattr(function, "__name__", str(function)))
        return function(*args, **(kwargs or {}))


class Strange(torch.Tensor):
    @property
    def shape(self):
        seen.append("shape")
        return super().shape


class Box(dict):
    def items(self):
        seen.append("items")
        return super().items()


@torch.compile(backend="eager")
def f(x, other):
    return x.sin()


nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
strange = torch.ones(2).as_subclass(Strange)
for other in (torch.ones(2), nested, strange, Box(a=strange), [strange, (nested, {"k": strange})]):
    with Mode():
        for n in (3, 4):
            f(torch.ones(n), other)
print(seen)
"""


def test_no_code_of_the_script_is_called(tmp_path: Path) -> None:
    script = write(tmp_path, SCRIPT)
    ran = run_forked(script, tmp_path / "runs.db")
    assert ran.report.capture_gaps == ()
    assert ran.findings("recompilation")
    assert "sin" in ran.stdout
    assert ran.stdout == run_plain(script).stdout
