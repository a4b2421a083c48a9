"""The arguments of a compiled function are looked at without the script seeing it."""

from __future__ import annotations

from pathlib import Path

from support import run_forked, run_plain_forked, write

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
    assert ran.stdout == run_plain_forked(script).stdout


BREAK_BELOW = """
import torch


class Block(torch.nn.Module):
    def forward(self, x):
        y = x * 2
        torch._dynamo.graph_break()
        return y.softmax(-1)


block = Block()


def step(batch):
    hidden = block(batch)
    return hidden.sum()


fast = torch.compile(step, backend="eager")
for size in (4, 7):
    fast(torch.ones(size, 8))
"""


def test_what_a_break_in_a_called_function_left_has_no_wrong_name(tmp_path: Path) -> None:
    """The value is the result of the call, which is no name of the user's, and not the function that goes on."""
    ran = run_forked(write(tmp_path, BREAK_BELOW), tmp_path / "runs.db")
    messages = [finding.message for finding in ran.findings("recompilation")]
    assert any(message.startswith("`step` was compiled again: a value: size 4 → 7") for message in messages), messages
    assert not any("`step`: size" in message for message in messages)
