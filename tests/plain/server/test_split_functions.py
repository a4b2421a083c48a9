"""Compiled functions as two, a plain one and what it calls; values that are looked up, and divisors, inside of the graph."""

from __future__ import annotations

from typing import Any

import pytest
from irscope.fixing.rules import gradient_modes
from irscope.fixing.source import Source
from irscope.protocol import GRAD_MODE, RecompilationFacts
from test_fix_families import WHERE, changed, found

BEFORE = "Do it before the compiled code, and pass on what comes of it"
DECIDE = "Decide before the compiled code, and pass on the answer"
BODY = "Compile the body of the loop, not the loop"
LOOKUP = "Look it up inside of the graph"
SAFE = f"{WHERE}, and divide by 1 where a side does not count"
PLAIN = "@torch.compiler.disable(recursive=False)\n"


@pytest.mark.parametrize(
    ("body", "at", "after", "plain"),
    [
        # a statement alone
        ("names.append(uuid.uuid4().hex)\n    return x + 1", "uuid.uuid4", "def f_after(x):\n    return x + 1",
         "    names.append(uuid.uuid4().hex)\n    return f_after(x)"),
        # all that follows it and is plain, too, in the same order
        ("random.seed(1)\n    scale = random.random()\n    return x * scale", "random.seed",
         "def f_after(x, scale):\n    return x * scale",
         "    random.seed(1)\n    scale = random.random()\n    return f_after(x, scale)"),
        # a condition
        ("if random.random() < 0.5:\n        x = x + 1\n    return x", "random.random",
         "def f_after(x, decided):\n    if decided:\n        x = x + 1\n    return x",
         "    decided = random.random() < 0.5\n    return f_after(x, decided)"),
        # with its comments; the arguments of a lambda are not those of the function
        ("# a name\n    n = max(names, key=lambda x: x)  # the last\n    # the rest\n    return x + n", "max(names",
         "def f_after(x, n):\n    # the rest\n    return x + n",
         "    # a name\n    n = max(names, key=lambda x: x)  # the last\n    return f_after(x, n)"),
        # of an argument
        ('"""Adds."""\n    n = zlib.crc32(x)\n    return n + 1', "zlib.crc32", 'def f_after(x, n):\n    """Adds."""\n    return n + 1',
         "    n = zlib.crc32(x)\n    return f_after(x, n)"),
        # of an argument that keeps its name
        ("x = zlib.crc32(x)\n    x = zlib.crc32(x)\n    return x + 1", "zlib.crc32", "def f_after(x):\n    return x + 1",
         "    x = zlib.crc32(x)\n    x = zlib.crc32(x)\n    return f_after(x)"),
        # a condition on the values of a tensor
        ("if x.abs().max() > 3:\n        print(x)\n    return x", "x.abs().max() >",
         "def f_after(x, decided):\n    if decided:\n        print(x)\n    return x",
         "    decided = bool(x.abs().max() > 3)\n    return f_after(x, decided)"),
        # on those of a tensor of the file
        ("if LIMITS.max() > 2:\n        x = x + 1\n    return x", "LIMITS.max() >",
         "def f_after(x, decided):\n    if decided:\n        x = x + 1\n    return x",
         "    decided = bool(LIMITS.max() > 2)\n    return f_after(x, decided)"),
    ],
)  # fmt: skip
def test_what_is_plain_python_comes_before(body: str, at: str, after: str, plain: str) -> None:
    head = "import random\nimport uuid\nimport zlib\nimport torch\n\nnames = []\nLIMITS = torch.ones(3)\n\n\n"
    text = f"{head}def f(x):\n    {body}\n\n\ng = torch.compile(f, backend='eager')\n"
    wanted = f"@torch.compile(backend='eager')\n{after}\n\n\n{PLAIN}def f(x):\n{plain}\n\n\ng = f\n"
    assert changed(text, at, "GB0007")[DECIDE if ".max()" in body else BEFORE] == head + wanted


def test_of_a_method() -> None:
    text = "import random\nimport torch\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        n = random.random()\n        return x * n\n"
    made = changed(text, "random.random", "GB0007")[BEFORE]
    assert made.endswith(
        f"    {PLAIN}    def forward(self, x):\n        n = random.random()\n        return self.forward_after(x, n)\n\n"
        "    def forward_after(self, x, n):\n        return x * n\n"
    )


@pytest.mark.parametrize(
    "body",
    [
        "y = random.uniform(0, x.mean())\n    return x * y",  # of a tensor
        "n = x.shape[0]\n    y = random.choice(range(n))\n    return x * y",  # of a size
        "for _ in range(2):\n        x = x * random.random()\n    return x",  # one for each turn
        "y = torch.rand(3)\n    return x * y",  # an operation on tensors
        "y = helper()\n    return x * y",  # it may have some
        "with random.random() as y:\n        return x * y",
        "x.add_(1)\n    y = random.uniform(0, x)\n    return x * y",  # of an argument that may be another by then
        "y = x + 1\n    x = random.random()\n    return x + y",  # the argument is read before
        "if helper(x).any() or random.random():\n        x = x + 1\n    return x",
        "y = x + 1\n    if y.sum() > random.random():\n        x = x + 1\n    return x",
    ],
)
def test_what_stays_in_compiled_code(body: str) -> None:
    text = (
        f"import random\nimport torch\n\ndef helper():\n    return 1\n\ndef f(x):\n    {body}\n\ng = torch.compile(f)\n"
    )
    at = next(one for one in ("random.", "torch.rand", "helper()\n    r") if one in text.partition("def f")[2])
    assert not {BEFORE, DECIDE} & set(changed(text, at, "GB0007"))


@pytest.mark.parametrize("other", ["torch.compile(h)", "torch.compile(f); torch.compile(h)", "f"])
def test_another_function_is_not_split(other: str) -> None:
    text = f"import random\nimport torch\n\ndef f(x):\n    y = random.random()\n    return x * y\n\ng = {other}\n"
    assert BEFORE not in changed(text, "random.random", "GB0007")


def test_the_body_of_a_loop() -> None:
    text = (
        "import torch\n\n\n@torch.compile(fullgraph=True)\ndef f(xs, scale):\n    total = xs[0]\n    # all others\n"
        "    for x in xs[1:]:\n        y = x * scale\n        total = total + y\n    return total\n"
    )
    text = text.replace("    total = xs[0]\n", "    total = xs[0]\n    y = total\n")
    assert changed(text, "def f", "recompile-value", kind="recompilation")[BODY] == (
        "import torch\n\n\n@torch.compile(fullgraph=True)\ndef f_turn(scale, total, x, y):\n    y = x * scale\n"
        f"    total = total + y\n    return total, y\n\n\n{PLAIN}def f(xs, scale):\n    total = xs[0]\n    y = total\n"
        "    # all others\n    for x in xs[1:]:\n        total, y = f_turn(scale, total, x, y)\n    return total\n"
    )


@pytest.mark.parametrize(
    "body",
    [
        "for _ in range(n):\n        x = x.sin()\n    return x + 1",  # work after it
        "x = x.cos()\n    for _ in range(n):\n        x = x.sin()\n    return x",  # and before it
        "for _ in range(n):\n        if n:\n            break\n        x = x.sin()\n    return x",
        "for _ in range(n):\n        y = x.sin()\n    return y",  # what has no value before the first turn
        "for _ in range(n):\n        x.sin_()\n    return x",  # nothing is assigned
        "for _ in range(n):\n        for _ in range(n):\n            return x\n    return x",
        "while n:\n        x = x.sin()\n    return x",
    ],
)
def test_other_loops(body: str) -> None:
    text = f"import torch\n\ndef f(x, n):\n    {body}\n\ng = torch.compile(f)\n"
    assert BODY not in changed(text, "def f", "recompile-value", kind="recompilation")


@pytest.mark.parametrize(
    ("values", "index", "after"),
    [
        ("[0.5, 2.0]", "int(x.mean() > 0)", "torch.tensor(SCALES, dtype=torch.float64).take(torch.as_tensor(x.mean() > 0).long())"),
        ("(1, -2)", "n.item()", "torch.tensor(SCALES).take(torch.as_tensor(n).long())"),
        ("['a', 'b']", "n.item()", None),
        ("[0.5, 2.0]", "n", None),
        ("[0.5, 2.0]", "n.item():", None),
        ("[]", "n.item()", None),
        ("[1, 2]", "0, n.item()", None),
        ("[1, 2]", "n.item(0)", None),
    ],
)  # fmt: skip
def test_a_value_that_is_looked_up(values: str, index: str, after: str | None) -> None:
    text = f"import torch\n\nSCALES = {values}\n\ndef f(x, n):\n    return x * SCALES[{index}]\n"
    made = changed(text, f"SCALES[{index}]", "GB0124").get(LOOKUP)
    assert made == (None if after is None else text.replace(f"SCALES[{index}]", after))


def test_a_list_that_changes_is_not_looked_up() -> None:
    text = "import torch\n\nSCALES = [1, 2]\nSCALES = [3]\n\ndef f(x, n):\n    return x * SCALES[n.item()]\n"
    assert LOOKUP not in changed(text, "n.item()", "GB0124")


def test_a_divisor_that_the_condition_is_about() -> None:
    text = (
        "import torch\n\ndef f(x, n):\n    if n > 0:\n        y = x / n\n    else:\n        y = x * 0\n    return y\n"
    )
    fixes = changed(text, "n > 0", "GB0170")
    assert "y = torch.where(n > 0, x / torch.where((n > 0), n, torch.ones_like(n)), x * 0)\n" in fixes[SAFE]
    assert SAFE not in changed(text.replace("x / n", "x / x"), "n > 0", "GB0170")
    assert SAFE not in changed(text.replace("x / n", "x * n"), "n > 0", "GB0170")
    other = changed(text.replace("x / n", "x").replace("x * 0", "x / n"), "n > 0", "GB0170")[SAFE]
    assert "torch.where(n > 0, x, x / torch.where(~(n > 0), n, torch.ones_like(n)))" in other


MODE: dict[str, Any] = {"kind": "recompilation", "facts": RecompilationFacts(state=GRAD_MODE)}
GRADIENTS = "Run one graph with gradients, and detach its result where they are off"


def test_one_graph_for_both_gradient_modes() -> None:
    text = "import torch\n\n\n@torch.compile\ndef f(x):\n    return x * 2\n"
    assert changed(text, "def f", "recompile-global-state", **MODE)[GRADIENTS] == (
        f"import torch\n\n\n@torch.compile\ndef f_with_gradients(x):\n    return x * 2\n\n\n{PLAIN}def f(x):\n"
        "    with torch.enable_grad():\n        result = f_with_gradients(x)\n"
        "    return result if torch.is_grad_enabled() else result.detach()\n"
    )
    several = text.replace("x * 2", "x, 2")
    assert GRADIENTS not in changed(several, "def f", "recompile-global-state", **MODE)
    other = {**MODE, "facts": RecompilationFacts(state="num_threads")}
    assert GRADIENTS not in changed(text, "def f", "recompile-global-state", **other)
    nothing = text.replace("return x * 2", "x.mul_(2)")
    assert GRADIENTS not in changed(nothing, "def f", "recompile-global-state", **MODE)
    made = list(gradient_modes.RULE.propose(Source(text), found(text, "def f", "recompile-global-state", **MODE)))
    assert [one.last for one in made] == [True]  # it costs memory


def test_one_graph_of_a_method_for_both_gradient_modes() -> None:
    text = "import torch\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return x * 2\n"
    made = changed(text, "def forward", "recompile-global-state", **MODE)[GRADIENTS]
    assert made == (
        f"import torch\n\nclass Net(torch.nn.Module):\n    {PLAIN}    def forward(self, x):\n        with torch.enable_grad():\n"
        "            result = self.forward_with_gradients(x)\n"
        "        return result if torch.is_grad_enabled() else result.detach()\n\n"
        "    def forward_with_gradients(self, x):\n        return x * 2\n"
    )
