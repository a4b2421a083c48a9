"""Both sides of a branch are computed: containers, tensors of objects, and conditions on several tensors."""

from __future__ import annotations

import textwrap

import pytest
from test_fix_families import WHERE, changed


def _after(lines: str) -> list[str] | None:
    """The lines of a function with its first ``if`` flattened; None if it is not."""
    body = textwrap.indent(textwrap.dedent(lines).strip("\n"), "    ")
    at = next(line for line in lines.split("\n") if line.lstrip().startswith("if ")).strip()
    text = changed(f"import torch\n\n\ndef f(self, x, y, ts):\n{body}\n", at[3:-1], "GB0170").get(WHERE)
    return None if text is None else [line.strip() for line in text.split("\n")[4:] if line]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            "if x.sum() > 0:\n    return x * 2, y\nreturn x, y",
            ["chosen = x.sum() > 0", "return torch.where(chosen, x * 2, x), y"],
        ),
        (
            "if x.sum() > 0:\n    return x,\nreturn (y,)",
            ["chosen = x.sum() > 0", "return (torch.where(chosen, x, y),)"],
        ),
        (
            "if x.sum() > 0:\n    return {'a': x, 'b': [y]}\nreturn {'a': y, 'b': [x]}",
            ["chosen = x.sum() > 0", "return {'a': torch.where(chosen, x, y), 'b': [torch.where(chosen, y, x)]}"],
        ),
        (
            "if x.sum() > 0:\n    ts = [t / x for t in ts]\nreturn ts",
            ["chosen = x.sum() > 0", "ts = [torch.where(chosen, t / x, t) for t in ts]", "return ts"],
        ),
        (
            "if x.sum() > 0:\n    return [t + 1 for t in ts]\nreturn [t - 1 for t in ts]",
            ["chosen = x.sum() > 0", "return [torch.where(chosen, t + 1, t - 1) for t in ts]"],
        ),
        ("if x.sum() > 0:\n    return x, 1\nreturn x, 2", None),  # a number for whoever takes it apart
        ("if x.sum() > 0:\n    return x, y\nreturn x", None),
        ("if x.sum() > 0:\n    return (x, *ts)\nreturn (y, *ts)", None),
        ("if x.sum() > 0:\n    return {'a': x}\nreturn {'b': y}", None),
        ("if x.sum() > 0:\n    return {x: x}\nreturn {x: y}", None),  # what a tensor is equal to is not known
        ("if x.sum() > 0:\n    ts = [t for t in ts if t.dim()]\nreturn ts", None),  # other elements
        ("if x.sum() > 0:\n    return [t + 1 for t in ts]\nreturn [t - 1 for t in y]", None),
        ("if x.sum() > 0:\n    ts = [t + u for t, u in ts]\nreturn ts", None),
    ],
)
def test_containers_are_chosen_element_by_element(lines: str, expected: list[str] | None) -> None:
    assert _after(lines) == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            "if x.sum() > 0:\n    self.mean.copy_(x)\nelse:\n    self.mean.lerp_(x, 0.1)\nreturn x - self.mean",
            ["self.mean.copy_(torch.where(x.sum() > 0, x, self.mean.lerp(x, 0.1)))", "return x - self.mean"],
        ),
        (
            "if x.sum() > 0:\n    self.ema.seen += 1\n    self.codes[0] = x\nreturn x",
            ["chosen = x.sum() > 0", "codes_changed = self.codes.clone()", "codes_changed[0] = x",
             "chosen_seen, chosen_codes = torch.where(chosen, self.ema.seen + 1, self.ema.seen), torch.where(chosen, codes_changed, self.codes)",
             "self.ema.seen.copy_(chosen_seen)", "self.codes.copy_(chosen_codes)", "return x"],
        ),
        (
            "if x.sum() > 0:\n    self.scale.zero_()\n    return x * self.scale\nreturn self.scale",
            ["chosen = x.sum() > 0",
             "result, chosen_scale = torch.where(chosen, x * new_scale, self.scale), torch.where(chosen, new_scale, self.scale)"],
        ),
        ("if x.sum() > 0:\n    self.mean = x\nreturn x", None),  # another object, which others may have
        ("if x.sum() > 0:\n    self.noise.normal_()\nreturn x", None),
        ("if x.sum() > 0:\n    self.items.append(x)\nreturn x", None),
        ("if x.sum() > 0:\n    self.parts()[0].zero_()\nreturn x", None),
    ],
)  # fmt: skip
def test_tensors_of_objects_are_changed_in_place(lines: str, expected: list[str] | None) -> None:
    found = _after(lines)
    if found is not None and any("scale" in one for one in found):
        found = [one.replace("torch.zeros_like(self.scale)", "new_scale") for one in found][:2]
    assert found == expected


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("any(t.isnan().any() for t in ts)", "torch.as_tensor(sum(t.isnan().any() for t in ts) > 0)"),
        ("all([t.sum() for t in ts if t.dim()])",
         "torch.as_tensor(sum(torch.logical_not(t.sum() != 0) for t in ts if t.dim()) == 0)"),
        ("any(t.training for t in ts)", None),  # flags of Python's
    ],
)  # fmt: skip
def test_one_condition_on_several_tensors(test: str, expected: str | None) -> None:
    found = _after(f"if {test}:\n    x = x + 1\nreturn x")
    assert found == (None if expected is None else [f"x = torch.where({expected}, x + 1, x)", "return x"])
