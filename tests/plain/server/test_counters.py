"""Numbers of objects that change from call to call: counted and computed before the compiled code."""

from __future__ import annotations

import pytest
from irscope.protocol import RecompilationFacts
from test_fix_families import changed

COUNT = "Count before the compiled code"
PASS = "Compute the number before the compiled code, and pass it as a tensor"
TYPED = f"{PASS} of the same type as `x`"
HEAD = """\
import math
import torch

LIMIT = 10


class Net(torch.nn.Module):
    calls = 0

    def __init__(self, warmup, gain):
        self.warmup = warmup
        self.gain = gain()

"""
PLAIN = "    @torch.compiler.disable(recursive=False)\n"


def _after(body: list[str], title: str, name: str = "self.step", was: str = "1") -> str | None:
    """The method as a fix has it."""
    lines = "".join(f"        {line}\n" for line in body)
    text = f"{HEAD}    def forward(self, x):\n{lines}\n\nnet = torch.compile(Net())\n"
    facts = RecompilationFacts(name, number=was)
    after = changed(text, name, "recompile-value", kind="recompilation", facts=facts).get(title)
    return None if after is None else after.removeprefix(HEAD).removesuffix("\n\nnet = torch.compile(Net())\n")


def test_a_counter_that_nothing_reads() -> None:
    after = _after(["y = x + 1", "# one more", "Net.calls += 1", "self.seen += 8", "return y"], COUNT, "Net.calls")
    assert after == (
        f"{PLAIN}    def forward(self, x):\n        # one more\n        Net.calls += 1\n        self.seen += 8\n"
        "        return self.forward_after(x)\n\n    def forward_after(self, x):\n        y = x + 1\n        return y\n"
    )


@pytest.mark.parametrize(
    ("expression", "passed"),
    [
        ("x * min(1.0, self.step / self.warmup)", "torch.tensor(min(1.0, self.step / self.warmup), dtype=torch.float64)"),
        ("x * (1 - math.exp(-self.step))", "torch.tensor(1 - math.exp(-self.step), dtype=torch.float64)"),
        ("x + self.step // LIMIT", "torch.tensor(self.step // LIMIT)"),
        ("x * self.gain * self.step", "torch.tensor(self.step)"),  # what a gain is is not known
        ("x if self.step > self.warmup else -x", "self.step > self.warmup"),
        ("x if self.training and not self.step else -x", "not self.step"),
    ],
)  # fmt: skip
def test_what_is_computed_of_a_number_is_passed(expression: str, passed: str) -> None:
    after = _after(["self.step += 1", f"return {expression}"], PASS)
    assert after is not None and f"        self.step += 1\n        return self.forward_after(x, {passed})\n" in after
    assert "self.step" not in after.partition("def forward_after")[2]
    typed = _after(["self.step += 1", f"return {expression}"], TYPED)
    assert (typed is not None) == ("float64" in passed)
    assert typed is None or passed.replace("torch.float64", "x.dtype") in typed


def test_a_number_that_is_set_elsewhere() -> None:
    after = _after(["return x / self.tau"], PASS, "self.tau", "1.0")
    assert after is not None and "return self.forward_after(x, torch.tensor(self.tau, dtype=torch.float64))\n" in after


@pytest.mark.parametrize(
    "body",
    [
        ["y = x * self.step", "self.step += 1", "return y"],  # it is read before
        ["if x is None:", "    return x", "self.step += 1", "return x * self.step"],  # not in each call
        ["self.step += 1", "self.step = self.step % 3", "return x * self.step"],
        ["self.step += x.shape[0]", "return x * self.step"],
        ["self.step += 1", "self = self.inner", "return x * self.step"],
    ],
)
def test_what_is_not_counted_like_that(body: list[str]) -> None:
    assert _after(body, COUNT) is None and _after(body, PASS) is None
