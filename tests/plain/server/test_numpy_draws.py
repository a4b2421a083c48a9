"""What a helper that draws with NumPy becomes, and which helpers stay as they are."""

from __future__ import annotations

import pytest
from test_fix_families import changed

DRAW = "Draw with NumPy in one operation of the graph"
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
