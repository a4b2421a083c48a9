"""What a helper that draws with NumPy becomes, and which helpers stay as they are; and flags of gradients on the way."""

from __future__ import annotations

import pytest
from test_fix_families import changed

DRAW = "Draw with NumPy in one operation of the graph"
FLAG = "Leave the gradient flag out while compiling"
HELPER = '''\
import numpy as np
import torch


def spans(shape: tuple[int, int], share: float, lengths: torch.Tensor | None = None) -> np.ndarray:
    """Masks spans."""
    rows, columns = shape
    mask = np.zeros((rows, columns), dtype=bool)
    count = int(np.random.rand() * share)
    mask[:, :count] = True
    return mask
'''
AT = "np.random.rand()"


def test_the_helper_is_an_operator() -> None:
    text = changed(HELPER, AT, "GB0033")[DRAW]
    made = text[text.index("@torch.library") :]
    assert made == (
        "@torch.library.custom_op(\n"
        '    "numpy_draws::script_spans",\n'
        "    mutates_args=(),\n"
        '    schema="(SymInt[] shape, float share, Tensor? lengths) -> Tensor",\n'
        "    tags=(torch.Tag.nondeterministic_seeded,),\n"
        ")\n"
        "def spans_in_graph(shape, share, lengths):\n"
        "    return torch.from_numpy(spans_with_numpy(tuple(shape), share, lengths))\n\n\n"
        "# It moves NumPy's generator on: equal calls must not become one.\n"
        "spans_in_graph.register_effect(torch._library.effects.EffectType.ORDERED)\n\n\n"
        "@spans_in_graph.register_fake\n"
        "def _(shape, share, lengths):\n"
        "    rows, columns = shape\n"
        "    return torch.empty((rows, columns), dtype=torch.bool)\n\n\n"
        "def spans(shape: tuple[int, int], share: float, lengths: torch.Tensor | None = None) -> np.ndarray:\n"
        '    """Masks spans."""\n'
        "    return torch.ops.numpy_draws.script_spans(shape, share, lengths).numpy()\n"
    )
    assert HELPER.replace("def spans(", "def spans_with_numpy(") in text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("share: float", "share"),  # its type is not known
        ("share: float", "*share: float"),
        ("share: float", "share: Odd"),
        ("np.zeros((rows, columns), dtype=bool)", "np.zeros((rows, columns), dtype=Odd)"),
        ("np.zeros((rows, columns), dtype=bool)", "np.full((rows, columns), 2.0)"),
        ("np.zeros((rows, columns), dtype=bool)", "np.zeros((rows, LONGEST), dtype=bool)"),
        ("return mask", "return mask[:count]"),  # a shape that is drawn
        ("return mask", "mask = mask[:count]\n    return mask"),
        ("return mask", "mask.resize(count)\n    return mask"),
        ("return mask", "rows = 3\n    return mask"),  # not what the array was made with, as far as one sees
        ("return mask", "if count:\n        return None\n    return mask"),
        ("return mask", "SEEN.append(count)\n    return mask"),
        ("return mask", "lengths += 1\n    return mask"),  # an argument is changed
        ("return mask", "lengths[0] = 1\n    return mask"),
        ("return mask", "lengths.zero_()\n    return mask"),
        ("return mask", "np.put(lengths.numpy(), 0, 1)\n    return mask"),
        ("return mask", "keep(lengths)\n    return mask"),
        ("def spans", "@cached\ndef spans"),
        ("import numpy as np\n", "import numpy as np\n\n\nclass A:\n    pass\n\n\n"),
    ],
)
def test_what_stays_as_it_is(old: str, new: str) -> None:
    text = HELPER.replace(old, new, 1)
    assert text != HELPER
    is_same_helper = old.startswith("import")
    assert (DRAW in changed(text, AT, "GB0033")) is is_same_helper


def test_a_tensor_may_be_read() -> None:
    text = HELPER.replace("return mask", "n = lengths.sum(-1).tolist() if lengths is not None else []\n    return mask")
    assert DRAW in changed(text, AT, "GB0033")


BODY = "import torch\n\n\ndef f(self, x, y):\n{}    return x\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "    if self.training:  # for checkpoints\n        x.requires_grad = True\n",
            "    if self.training and not torch.compiler.is_compiling():  # for checkpoints\n        x.requires_grad = True\n",
        ),
        (
            "    if y or self.training:\n        x.requires_grad_()\n",
            "    if (y or self.training) and not torch.compiler.is_compiling():\n        x.requires_grad_()\n",
        ),
        (
            "    # for checkpoints\n    x.requires_grad_(True)\n",
            "    # for checkpoints\n    if not torch.compiler.is_compiling():\n        x.requires_grad_(True)\n",
        ),
        (
            "    if y:\n        x.requires_grad = True\n    else:\n        x = y\n",
            "    if y:\n        if not torch.compiler.is_compiling():\n            x.requires_grad = True\n    else:\n        x = y\n",
        ),
        ("    x.requires_grad = False\n", None),
        ("    x.requires_grad_(False)\n", None),
        ("    x = y.requires_grad_()\n", None),
    ],
)
def test_flags_of_gradients(before: str, after: str | None) -> None:
    at = next(line.strip() for line in before.split("\n") if "requires_grad" in line)
    own = "    x = y[:, None]\n{}"
    made = changed(BODY.format(own.format(before)), at, "GB0206").get(FLAG)
    assert made == (None if after is None else BODY.format(own.format(after)))
    # Whoever has given the tensor may read its flag.
    for given in (
        "",
        "    x = y\n",
        "    x = self.kept\n",
        "    x = y[0]\n",
        "    x = self.state(y)\n",
        "    x = y.to('cpu')\n",
    ):
        assert FLAG not in changed(BODY.format(given + before), at, "GB0206")
