"""Decisions on numbers as checks of the graph, functions that are left to Python, output, copies, and comments that are kept."""

from __future__ import annotations

import pytest
from irscope.fixing.proposals import proposals
from irscope.fixing.texts import applied
from irscope.protocol import BreakFacts
from test_fix_families import changed, found

TITLE = "Let the number be a symbol of the graph, and check its bounds there"
PLAIN = "Leave the function to Python, and compile what it calls"
BODY = "import torch\n\n\ndef f(x, lengths):\n    n = int(lengths.max())\n{}    return x[:n]\n"
SETTING = "torch._dynamo.config.capture_scalar_outputs = True\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            '    # as the model wants\n    if n > 8 or n == 0:\n        raise ValueError("too long")\n',
            '    # as the model wants\n    torch._check(n <= 8, lambda: "too long")\n    torch._check(n != 0, lambda: "too long")\n',
        ),
        ('    if n >= 8:\n        raise ValueError(f"{n} is too long")\n', "    torch._check(n < 8)\n"),
        ("    if n > 8:\n        n = 8\n", "    n = min(n, 8)\n"),
        (
            "    if n < 1:\n        n = 1\n    if n > 8:\n        raise E\n",
            "    n = max(n, 1)\n    torch._check(n <= 8)\n",
        ),
        (
            '    assert n <= 8, "too long"  # of the model\n',
            '    torch._check(n <= 8, lambda: "too long")  # of the model\n',
        ),
        (
            "    assert 0 < n and n <= 8, n\n    if n > 7:\n        raise E\n",
            "    torch._check(0 < n)\n    torch._check(n <= 8)\n    torch._check(n <= 7)\n",
        ),
        ("    assert n in (3, 4)\n    if n == 3:\n        x = x + 1\n", None),
        ("    assert n or x.dim()\n", None),
        ("    if n > 8 and n < 10:\n        raise E\n", None),  # the opposite is a decision, too
        ("    if n > 8:\n        n = 9\n", None),
        ("    if n > 8:\n        return x\n", None),
        ("    if n > 8:\n        raise E\n    if n == 3:\n        x = x + 1\n", None),  # the next break
        ("    if x.dim() > 2:\n        raise E\n", None),  # not about the number
        ("    if n > 8:\n        raise E\n    else:\n        x = x + 1\n", None),
    ],
)
def test_decisions_on_a_number(before: str, after: str | None) -> None:
    made = changed(BODY.format(before), "int(lengths.max())", "GB0124").get(TITLE)
    if after is None:
        assert made is None
    else:
        head = f"import torch\nimport torch._dynamo\n\n{SETTING}"
        assert made == BODY.format(after).replace("import torch\n", head)


def test_what_is_set_already_is_not_set_again() -> None:
    before = BODY.format("    if n > 8:\n        raise E\n").replace("import torch\n", f"import torch\n{SETTING}")
    made = changed(before, "n > 8", "data-dependent-guard")[TITLE]
    assert made == before.replace("if n > 8:\n        raise E", "torch._check(n <= 8)")


@pytest.mark.parametrize(
    ("decorator", "is_plain", "offered"),
    [
        ("", True, True),
        ("", False, False),
        ("@torch.no_grad()\n", True, False),
    ],
)
def test_a_function_that_is_plain_python_already(decorator: str, is_plain: bool, offered: bool) -> None:
    text = f"import torch\n\n\n{decorator}def f(x):\n    for one in x:\n        if one > 0:\n            g(one)\n"
    fixes = proposals(found(text, "one > 0", "GB0170", facts=BreakFacts(is_plain)), text)
    titles = {fix.title: applied(text, fix.edits) for fix in fixes}
    assert (PLAIN in titles) == offered
    if offered:
        assert titles[PLAIN] == text.replace("def f", "@torch.compiler.disable(recursive=False)\ndef f")
        assert fixes[-1].title == PLAIN


PYTHON = "Compute the number with Python instead of NumPy"
NUMPY = "import numpy as np\nimport torch\n"


@pytest.mark.parametrize(
    ("body", "after"),
    [
        ("    if x.shape[0] % np.sum(sizes) != 0:\n", "    if x.shape[0] % sum(sizes) != 0:\n"),
        ("    n = np.sum(sizes)\n    if n:\n", "    n = sum(sizes)\n    if n:\n"),
        ("    n = int(np.ceil(sizes[0]))\n    if n:\n", "    n = int(math.ceil(sizes[0]))\n    if n:\n"),
        ("    n = common(sizes)\n    if n:\n", None),  # in the function that is called
        ("    n = np.ceil(sizes[0])\n    if n:\n", "-"),  # Python's would be an int
        ("    n = np.sum(sizes, 0)\n    if n:\n", "-"),
        ("    n = np.sum(sizes, axis=0)\n    if n:\n", "-"),
        ("    sum = 1\n    if np.sum(sizes):\n", "-"),
        ("    m = np.sum(sizes)\n    n = 1\n    if n:\n", "-"),  # not what is read
    ],
)
def test_numbers_of_numpy(body: str, after: str | None) -> None:
    rest = "        x = x + 1\n    return x\n"
    helper = "\n\ndef common(sizes):\n    return np.lcm(sizes[0], sizes[1])\n"
    text = f"{NUMPY}\n\ndef f(x, sizes):\n{body}{rest}{helper}"
    made = changed(text, body[body.rindex("if ") :].rstrip("\n"), "GB0170").get(PYTHON)
    if after == "-":
        assert made is None
    else:
        new = text.replace(body, after) if after else text.replace("np.lcm(", "math.lcm(")
        assert made == (new.replace("import torch\n", "import torch\nimport math\n") if "math." in new else new)


@pytest.mark.parametrize(
    ("message", "after"),
    [
        ('f"height {h} of {self.size[0]}"', 'f"height … of {self.size[0]}"'),
        ('f"height {h}"', '"height …"'),
        ('f"{{height}} {h}"', '"{height} …"'),
        ('f"height of {self.size[0]}"', None),
    ],
)
def test_a_message_that_fixes_a_size(message: str, after: str | None) -> None:
    text = f"import torch\n\n\ndef f(self, x):\n    h = x.shape[0]\n    torch._check(h > 2, {message})\n    return x\n"
    made = changed(text, message, "specialize-value", kind="specialization")
    assert made == (
        {} if after is None else {"Leave the size out of the message of the check": text.replace(message, after)}
    )
    assert not changed(text.replace("torch._check(", "print("), message, "specialize-value", kind="specialization")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("if x.isnan().any():  # bad\n        print('NaN')\n        warnings.warn('NaN')",
         "if not torch.compiler.is_compiling() and x.isnan().any():  # bad\n        print('NaN')\n        warnings.warn('NaN')"),
        ("if x.any() or x.isnan().any():\n        print('NaN')",
         "if not torch.compiler.is_compiling() and (x.any() or x.isnan().any()):\n        print('NaN')"),
        ("if x.isnan().any():\n        print('NaN')\n        x = x + 1", None),  # it does more than write
        ("if x.isnan().any():\n        print('NaN')\n    else:\n        x = x + 1", None),
        ("if x.any():\n        x = x + 1\n    elif x.isnan().any():\n        print('NaN')", None),
    ],
)  # fmt: skip
def test_a_decision_whether_something_is_written(before: str, after: str | None) -> None:
    text = f"import warnings\nimport torch\n\ndef f(x):\n    {before}\n    return x\n"
    made = changed(text, "x.isnan()", "GB0170").get("Leave it out while compiling")
    assert made == (None if after is None else text.replace(before, after))


def test_a_clock_is_not_read_once_for_all_calls() -> None:
    text = (
        "import base64, time\nimport torch\n\n@torch.compile\ndef f(x):\n    start = time.time()\n    return x, start\n"
    )
    once, before = (
        "Compute it once, outside of the compiled code",
        "Do it before the compiled code, and pass on what comes of it",
    )
    assert not {once, before} & changed(text, "time.time()", "GB0007").keys()
    assert {once, before} <= changed(
        text.replace("time.time()", "base64.b64encode(b'a')"), "base64.b64encode(b'a')", "GB0007"
    ).keys()


@pytest.mark.parametrize(
    ("use", "after"),
    [
        ("new['h'] = x", "{key: value.detach().clone() if isinstance(value, torch.Tensor) else value for key, value in state.items()}"),
        ("new[0] = x", "[item.detach().clone() if isinstance(item, torch.Tensor) else item for item in state]"),
        ("new[x] = 1", None),
        ("x['h'] = 1", None),
    ],
)  # fmt: skip
def test_a_copy_of_an_argument_is_of_what_it_is_used_as(use: str, after: str | None) -> None:
    text = f"import copy\nimport torch\n\ndef f(state, x):\n    new = copy.deepcopy(state)\n    {use}\n    return new\n"
    for one in (text, text.replace("new", "state")):  # the copy may have the name of the argument
        made = changed(one, "copy.deepcopy", "GB4198").get("Clone its tensors")
        assert made == (None if after is None else one.replace("copy.deepcopy(state)", after))


@pytest.mark.parametrize(
    ("call", "values"),
    [
        ("torch.bincount(y, minlength=self.n)", "y"),
        ("torch.bincount(y + 1, None, self.n)", None),  # a weight, as far as the text says
        ("(y + 1).bincount(minlength=self.n)", "(y + 1)"),
        ("torch.bincount(y, w, self.n)", None),
        ("torch.bincount(y)", None),
        ("torch.bincount(*y, minlength=self.n)", None),
        ("torch.histc(y, self.n)", None),
    ],
)
def test_counts_of_a_known_number_of_classes(call: str, values: str | None) -> None:
    text = f"import torch\n\ndef f(self, y, w):\n    return {call} / 2\n"
    after = changed(text, call, "GB0036").get("Count with `scatter_add` into a tensor of `minlength` elements")
    zeros = f"torch.zeros(self.n, dtype=torch.long, device={values}.device)"
    made = f"{zeros}.scatter_add(0, {values}.long(), torch.ones_like({values}, dtype=torch.long))"
    assert after == (text.replace(call, made) if values is not None else None)
