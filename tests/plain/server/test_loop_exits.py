"""Loops whose turns end early by values of tensors, with all turns computed."""

from __future__ import annotations

import textwrap

import pytest
from test_fix_families import changed

BREAK = "Compute all turns of the loop, and keep what was there when it ends"
CONTINUE = "Compute all of each turn, and choose by value whether it counts"


def _after(lines: str, title: str) -> str | None:
    """The lines of a function with its loop as a fix has it."""
    at = next(line for line in lines.split("\n") if line.lstrip().startswith("if ")).strip()[3:].partition(":")[0]
    head = "import torch\n\n\ndef f(self, x, ys):\n"
    after = changed(head + textwrap.indent(lines, "    "), at, "GB0170").get(title)
    return None if after is None else textwrap.dedent(after.removeprefix(head))


def test_a_break_freezes_what_the_loop_computes() -> None:
    before = (
        "z = x\n# turns\nfor y in ys:\n    new = z * y  # once more\n    z = z + 1\n    if new.sum() < 3:  # enough\n"
        "        z = new\n        break\n    z = z + new\nreturn z\n"
    )
    assert _after(before, BREAK) == (
        "z = x\n# turns\ngoing = torch.ones((), dtype=torch.bool, device=z.device)\nfor y in ys:\n"
        "    new = z * y  # once more\n    # enough\n    stop = new.sum() < 3\n"
        "    z = torch.where(going, torch.where(stop, new, (z + 1) + new), z)\n    going = going & ~stop\nreturn z\n"
    )


def test_a_continue_leaves_out_the_rest_of_a_turn() -> None:
    before = (
        "for i in range(9):\n    over = g(x, i)\n    if not ys[i]:\n        continue\n    over[:i] = 0\n    x = x & ~over\nreturn x\n"
    )  # fmt: skip
    assert _after(before, CONTINUE) == (
        "for i in range(9):\n    over = g(x, i)\n    skipped = torch.logical_not(ys[i])\n    over_changed = over.clone()\n"
        "    over_changed[:i] = 0\n    x = torch.where(skipped, x, x & ~over_changed)\nreturn x\n"
    )


@pytest.mark.parametrize(
    "lines",
    [
        "for y in ys:\n    x = x * y\n    if x.sum() < 3:\n        break\nreturn x, y\n",  # in which turn it ended
        "for y in ys:\n    z = x * y\n    if z.sum() < 3:\n        break\nreturn z\n",  # no value before the loop
        "for y in ys:\n    x = x * y\n    if x.sum() < 3:\n        break\nelse:\n    x = x + 1\nreturn x\n",
        "for y in ys:\n    x = x * y\n    if x.sum() < 3:\n        return x\n    x = x + 1\nreturn x\n",
        "for y in ys:\n    if x.sum() < 3:\n        break\n    self.all.append(x)\n    x = x * y\nreturn x\n",
        "for y in ys:\n    if x.sum() < 3:\n        continue\n    self.mean.add_(y)\n    x = x * y\nreturn x\n",
        "for y in ys:\n    if y is None:\n        continue\n    x = x * y\nreturn x\n",  # decided by Python
        "while True:\n    x = x * 2\n    if x.sum() > 3:\n        break\nreturn x\n",  # how many turns is not known
    ],
)
def test_loops_that_stay(lines: str) -> None:
    assert _after(lines, BREAK) is None and _after(lines, CONTINUE) is None


def test_only_the_loop_around_it_changes() -> None:
    inner = "    for z in y:\n        if x.sum() > 3:\n            break\n        x = x * z\n"
    after = _after(f"for y in ys:\n{inner}    if x.max() > 9:\n        break\nreturn x\n", BREAK)
    assert after is not None and after.count("break") == 1
    assert after.startswith("for y in ys:\n    going = ") and "    for z in y:\n        stop = x.sum() > 3\n" in after
