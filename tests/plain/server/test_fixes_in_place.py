"""Both sides of a branch are computed: what is divided by, or changed in place, in the side that does not count."""

from __future__ import annotations

import pytest
from test_fix_families import WHERE, changed

IN_PLACE = f"{WHERE}, in place"
DIVIDED = f"{WHERE}, and divide by 1 where a side does not count"
ROOT = f"{WHERE}, and take the root or logarithm of 1 where a side does not count"


def _body(lines: str, at: str, title: str) -> list[str] | None:
    text = changed(f"import torch\n\n\ndef f(x, y):\n{lines}", at, "GB0170").get(title)
    return None if text is None else [line.strip() for line in text.split("\n")[4:] if line]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["if x.sum() > 0:", "    x.mul_(2)", "return x"],
         ["x.copy_(torch.where(x.sum() > 0, x.mul(2), x))", "return x"]),
        (["if x.sum() > 0:", "    x += y", "return x"],
         ["x.copy_(torch.where(x.sum() > 0, x + y, x))", "return x"]),
        (["if x.sum() > 0:", "    x.mul_(2)", "    y.add_(x)", "return x"],
         ["chosen = x.sum() > 0", "chosen_x, chosen_y = torch.where(chosen, x.mul(2), x), torch.where(chosen, y.add(x.mul(2)), y)",
          "x.copy_(chosen_x)", "y.copy_(chosen_y)", "return x"]),
        (["if x.sum() > 0:", "    x.mul_(2)", "    z = x + 1", "else:", "    z = y", "return z"],
         ["chosen = x.sum() > 0", "chosen_x, z = torch.where(chosen, x.mul(2), x), torch.where(chosen, x.mul(2) + 1, y)",
          "x.copy_(chosen_x)", "return z"]),
        (["if x.sum() > 0:", "    x = y * 2", "    x.mul_(2)", "return x"], None),  # not the tensor that x was
        (["if x.sum() > 0:", "    x = x * 2", "return x"], None),
    ],
)  # fmt: skip
def test_what_a_side_changes_in_place_stays_that_tensor(lines: list[str], expected: list[str] | None) -> None:
    found = _body("\n".join(f"    {line}" for line in lines), "x.sum() > 0", IN_PLACE)
    if found is not None and expected is not None and "x.mul(2)" in expected[1]:
        found = [line.replace("new_x", "x.mul(2)") for line in found if not line.startswith("new_x =")]
    assert found == expected


@pytest.mark.parametrize(
    ("side", "title", "expected"),
    [
        ("x / m", DIVIDED, "x / torch.where((m > 0), m, torch.ones_like(m))"),
        ("x / m.sqrt()", ROOT, "x / torch.where((m > 0), m, torch.ones_like(m)).sqrt()"),
        ("x * torch.log(m)", ROOT, "x * torch.log(torch.where((m > 0), m, torch.ones_like(m)))"),
        ("x * m.exp()", ROOT, None),
        ("x / y", DIVIDED, None),  # the condition says nothing about it
    ],
)
def test_what_has_no_gradient_at_zero_gets_one(side: str, title: str, expected: str | None) -> None:
    found = _body(f"    m = x.sum()\n    if m > 0:\n        return {side}\n    return x", "m > 0", title)
    assert found == (None if expected is None else ["m = x.sum()", f"return torch.where(m > 0, {expected}, x)"])


def test_what_a_condition_compares_is_a_divisor_of_its_own() -> None:
    found = _body("    if x.norm() > 9:\n        x = x / x.norm()\n    return x", "x.norm() > 9", DIVIDED)
    one = "torch.where((x.norm() > 9), x.norm(), torch.ones_like(x.norm()))"
    assert found == [f"x = torch.where(x.norm() > 9, x / {one}, x)", "return x"]


def test_the_last_side_of_a_chain_has_what_no_side_before_it_counts_for() -> None:
    lines = "    if m < 1:\n        y = m * m\n    elif m < 2:\n        y = m\n    else:\n        y = m.sqrt()\n    return y"
    found = _body(lines, "m < 1", ROOT)
    one = "torch.where(~(m < 1) & ~(m < 2), m, torch.ones_like(m)).sqrt()"
    assert found == [f"y = torch.where(m < 1, m * m, torch.where(m < 2, m, {one}))", "return y"]
    found = _body("    if m <= 0:\n        return m\n    return m.log()", "m <= 0", ROOT)
    assert found == ["return torch.where(m <= 0, m, torch.where(~(m <= 0), m, torch.ones_like(m)).log())"]


@pytest.mark.parametrize(
    ("call", "is_constant"),
    [("json.loads('[1]')", True), ("time.time()", False), ("random.random()", False), ("os.environ.get('A', 2)", False),
     ("np.random.rand()", False), ("next(IDS)", False)],
)  # fmt: skip
def test_what_changes_from_call_to_call_is_not_computed_once(call: str, is_constant: bool) -> None:
    text = f"import json, os, random, time\nimport numpy as np\nimport torch\n\nIDS = 3\n\ndef f(x):\n    a = {call}\n    return x * a\n"
    assert ("Compute it once, outside of the compiled code" in changed(text, call, "GB0007")) is is_constant


@pytest.mark.parametrize(
    ("body", "test"),
    [
        ('    if x.isnan().any():\n        warnings.warn("NaN")\n    return x',
         "if not torch.compiler.is_compiling() and x.isnan().any():"),
        ('    if x.any() or y.any():\n        print("some")\n        logging.info("more")\n    return x',
         "if not torch.compiler.is_compiling() and (x.any() or y.any()):"),
        ('    if x.isnan().any():\n        warnings.warn("NaN")\n        x = x + 1\n    return x', None),
        ('    if x.isnan().any():\n        warnings.warn("NaN")\n    else:\n        y = 1\n    return x', None),
    ],
)  # fmt: skip
def test_what_only_decides_about_output_is_not_asked_while_compiling(body: str, test: str | None) -> None:
    text = f"import logging, warnings\nimport torch\n\n\ndef f(x, y):\n{body}\n"
    found = changed(text, body[7 : body.index(":")], "GB0170").get("Leave it out while compiling")
    assert (None if found is None else found.split("\n")[5].strip()) == test


def test_a_chain_of_conditional_expressions_is_one_decision() -> None:
    found = _body("    s = 1.0 if x > 2 else 0.5 if x > 0 else 0.0\n    return x * s", "x > 0", WHERE)
    assert found == ["s = torch.where(x > 2, 1.0, torch.where(x > 0, 0.5, 0.0))", "return x * s"]
    assert _body("    s = 1.0 if y is None else 0.5 if x > 0 else 0.0\n    return x * s", "x > 0", WHERE) is None
