"""Indices of a fixed size, sizes that are padded to a bucket, and compiles for each size."""

from __future__ import annotations

import pytest
from irscope.fixing.proposals import proposals
from irscope.fixing.rules.sizes import static_sizes
from irscope.fixing.texts import applied
from irscope.protocol import RecompilationFacts, VaryingSize
from test_fix_families import changed, found

INDEX = "Give the index a fixed size with `torch.nonzero_static`, and leave out what is too much"
HEAD = "import torch\n\ndef f(x, m, out):\n"
MADE = "torch.nonzero_static(m, size=m.numel(), fill_value=0)"
CHOSEN = "    is_chosen = torch.arange(m.numel(), device=m.device) < m.count_nonzero()\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "    # rows\n    i = m.nonzero()  # all\n    return i.sum()\n",
            f"    # rows\n    i = {MADE}  # all\n{CHOSEN}    return torch.where(is_chosen[:, None], i, 0).sum()\n",
        ),
        (
            "    i = torch.where(m)[0]\n    picked = x[i]\n    return (picked * 2).sum(0) / len(i)\n",
            f"    i = {MADE}.unbind(-1)[0]\n{CHOSEN}    picked = x[i]\n"
            "    return torch.where(is_chosen[:, None], picked * 2, 0).sum(0) / m.count_nonzero()\n",
        ),
        (
            "    (i,) = torch.nonzero(m, as_tuple=True)\n    return x[i].mean(0)\n",
            f"    (i,) = {MADE}.unbind(-1)\n{CHOSEN}"
            "    return (torch.where(is_chosen[:, None], x[i], 0).sum(0) / m.count_nonzero())\n",
        ),
        (
            "    i = m.nonzero().squeeze(-1)\n    out[i] += x[i]\n    return out\n",
            f"    i = {MADE}.squeeze(-1)\n{CHOSEN}"
            "    out.index_put_((i,), torch.where(is_chosen[:, None], x[i], 0), accumulate=True)\n    return out\n",
        ),
        (
            # Both sides of the branch will be computed: no division by zero.
            "    i = m.nonzero().squeeze(-1)\n    if i.numel() == 0:\n        return x.sum() * 0\n    return x[i].sum() / i.numel()\n",
            f"    i = {MADE}.squeeze(-1)\n{CHOSEN}    if m.count_nonzero() == 0:\n        return x.sum() * 0\n"
            "    return torch.where(is_chosen[:, None], x[i], 0).sum() / m.count_nonzero().clamp(min=1)\n",
        ),
        (
            # What is skipped only adds: zeros are added.
            "    for w in out:\n        i = m.nonzero().squeeze(-1)\n        if i.numel() == 0:\n            continue\n"
            "        out.index_add_(0, i, x[i])\n    return out\n",
            f"    for w in out:\n        i = {MADE}.squeeze(-1)\n    {CHOSEN}        if i.numel() == 0:\n            continue\n"
            "        out.index_add_(0, i, torch.where(is_chosen[:, None], x[i], 0))\n    return out\n",
        ),
        ("    i = m.nonzero()\n    return x[i]\n", None),  # the shape of the result would be another
        ("    i = m.nonzero().squeeze(-1)\n    x[i] = 1\n    return x\n", None),  # the first row would change, too
    ],
)  # fmt: skip
def test_an_index_of_a_fixed_size(before: str, after: str | None) -> None:
    at = next(one for one in ("m.nonzero()", "torch.where(m)", "torch.nonzero(m, as_tuple=True)") if one in before)
    made = changed(HEAD + before, at, "GB0036")
    text = HEAD + before
    every = [applied(text, one.edits) for one in proposals(found(text, at, "GB0036"), text)]
    assert (INDEX in made) is (after is not None)
    assert after is None or HEAD + after in every


def test_what_is_skipped_and_does_more_than_add_is_asked_for() -> None:
    before = (
        "    for w in out:\n        i = m.nonzero().squeeze(-1)\n        if i.numel() == 0:\n            continue\n"
        "        n = n * 2\n        out.index_add_(0, i, x[i])\n    return out * n\n"
    )
    assert "if m.count_nonzero() == 0:" in changed(HEAD + before, "m.nonzero()", "GB0036")[INDEX]


PADDED = """\
def in_buckets(compiled):
    \"\"\"Pads dimension 1 of x and m to a multiple of 16, and cuts the result to its size.\"\"\"

    @torch.compiler.disable(recursive=False)
    def call(x, m, scale=2):
        size = x.shape[1]
        x = torch.nn.functional.pad(x, (0, 0) * (x.dim() - 2) + (0, -x.shape[1] % 16))
        m = torch.nn.functional.pad(m, (0, 0) * (m.dim() - 2) + (0, -m.shape[1] % 16))
        return compiled(x, m, scale).narrow(1, 0, size)

    return call


"""
FUNCTION = "def f(x, m, scale=2):\n    return x * m\n"
METHOD = "    def forward(self, x, m, scale=2):\n        return x * m\n"
VARYING = (VaryingSize("x", (1,)), VaryingSize("m", (1,)))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            f"import torch\n\n\n# mine\n@torch.compile(dynamic=False)\n{FUNCTION}",
            f"import torch\n\n\n{PADDED}# mine\n@in_buckets\n@torch.compile(dynamic=False)\n{FUNCTION}",
        ),
        (
            f"import torch\n\n{FUNCTION}\n\ng = torch.compile(f)\n",
            f"import torch\n\n{FUNCTION}\n\n{PADDED}g = in_buckets(torch.compile(f))\n",
        ),
        (  # a compiled module stays one
            f"import torch\n\nclass Net(torch.nn.Module):\n{METHOD}\nnet = torch.compile(Net())\n",
            f"import torch\n\nclass Net(torch.nn.Module):\n{METHOD}\n\n{PADDED}"
            "net = torch.compile(Net())\nnet.forward = in_buckets(net.forward)\n",
        ),
        (f"import torch\n\nclass Net(torch.nn.Module):\n{METHOD}\nrun(torch.compile(Net()))\n", None),
        (f"import torch\n\n{FUNCTION}\ng = torch.compile(f)\nh = torch.compile(f)\n", None),
        (f"import torch\n\n{FUNCTION}".replace("scale", "*scale").replace("=2", "") + "g = torch.compile(f)\n", None),
    ],
)
def test_sizes_in_buckets(before: str, after: str | None) -> None:
    for sizes in ((9, 7), (0, 7)):
        facts = RecompilationFacts("x", varying=VARYING, sizes=sizes)
        one = found(before, "x, m", "recompile-size", "recompilation", facts)
        titles = {fix.title: applied(before, fix.edits) for fix in proposals(one, before)}
        wanted = after if sizes == (9, 7) else None
        assert titles.get("Pad the size to a multiple of 16 before the call, and cut the result") == wanted
        assert (wanted is not None) is any("Pad the size" in title and "cut" not in title for title in titles)


@pytest.mark.parametrize(
    ("before", "are_dynamic", "after"),
    [
        ("f = torch.compile(g, dynamic=True)  # all\n", False, "f = torch.compile(g, dynamic=False)  # all\n"),
        ("@torch.compile\ndef f(x): ...\n", True, "@torch.compile(dynamic=False)\ndef f(x): ...\n"),
        ("@torch.compile\ndef f(x): ...\n", False, None),
        (
            "f = torch.compile(g)\ntorch._dynamo.mark_dynamic(x, 0)\nf(x)\n",
            False,
            "f = torch.compile(g, dynamic=False)\nf(x)\n",
        ),
        (
            "f = torch.compile(g)\nif y:\n    torch._dynamo.mark_dynamic(x, 0)\nf(x)\n",
            False,
            "f = torch.compile(g, dynamic=False)\nif y:\n    pass\nf(x)\n",
        ),
        ("f = torch.compile(g, dynamic=True)\nh = torch.compile(g)\n", True, None),
        ("f = (\n", True, None),
    ],
)
def test_a_compile_for_each_size(before: str, are_dynamic: bool, after: str | None) -> None:
    text = f"import torch\n{before}"
    fix = static_sizes(text, are_dynamic)
    assert (applied(text, fix.edits) if fix is not None else None) == (after and f"import torch\n{after}")
