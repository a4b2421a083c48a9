"""What a function does first to arguments of some sizes, before the compiled code."""

from __future__ import annotations

import pytest
from test_fix_families import changed

STEPS = "Do what depends on sizes before the compiled code"
PAD = "        x = torch.nn.functional.pad(x, (0, 1), value=0.0)\n"


def _after(body: str) -> str | None:
    text = f"import torch\n\nEVEN = 2\n\n\ndef f(x, mask):\n{body}\n\ng = torch.compile(f)\n"
    return changed(text, "x, mask", "recompile-condition", kind="recompilation").get(STEPS)


def test_steps_are_done_before() -> None:
    first = f'    """Pools."""\n    # odd\n    if x.shape[-1] % EVEN:\n{PAD}'
    second = "    if x.size(0) < mask.dim():\n        x = torch.cat([x, x])\n        mask = torch.cat([mask, mask])\n"
    rest = "    if mask.sum() > 0:\n        x = x + 1\n    return x * mask\n"
    after = _after(f"{first}{second}{rest}")
    assert after is not None
    steps = first.removeprefix('    """Pools."""\n') + second
    assert f"def f(x, mask):\n{steps}    return f_after(x, mask)\n" in after
    assert f'@torch.compile\ndef f_after(x, mask):\n    """Pools."""\n{rest}' in after and "\ng = f\n" in after


@pytest.mark.parametrize(
    "body",
    [
        f"    y = x.sum()\n    if x.shape[-1] % 2:\n{PAD}    return x * y\n",  # not the first
        f"    if x.shape[-1] % 2:\n{PAD}    else:\n        x = x + 1\n    return x\n",
        f"    if x.shape[-1] % 2 and x.sum() > 0:\n{PAD}    return x\n",  # values, too
        f"    if limit.shape[-1] % 2:\n{PAD}    return x\n",
        f"    if x.shape[-1] % step:\n{PAD}    return x\n",
        "    if x.shape[-1] % 2:\n        y = torch.nn.functional.pad(x, (0, 1))\n    return x\n",
        "    if x.shape[-1] % 2:\n        x = pad(x)\n    return x\n",  # compiled before
        "    if x.shape[-1] % 2:\n        x = x[:-1]\n        calls.append(1)\n    return x\n",
        "    if x.shape[-1] % 2:\n        return x\n    return x + 1\n",
    ],
)
def test_what_is_no_such_step(body: str) -> None:
    assert _after(body) is None
