"""The forms of fixes: a finding in a text, and what the text becomes.  Nothing is compiled: trials are tested elsewhere."""

from __future__ import annotations

import dataclasses
import textwrap
from pathlib import Path
from typing import Any

import pytest
from irscope.findings.recompiling.marks import Marks
from irscope.fixing.model import Rule
from irscope.fixing.proposals import all_rules, proposals
from irscope.fixing.texts import applied
from irscope.ir.artifacts.portability import NOT_PORTABLE
from irscope.protocol import (
    BreakFacts,
    Finding,
    FindingFacts,
    Position,
    Range,
    RecompilationFacts,
    Related,
    RelatedRole,
    Severity,
    VaryingSize,
)

HEAD = "import torch\n"


def found(text: str, at: str, code: str, kind: str = "graph-break", facts: FindingFacts | None = None) -> Finding:
    """A finding at the first place of a piece of text."""
    line = text[: text.index(at)].count("\n")
    column = text.split("\n")[line].index(at.split("\n")[0])
    place = Range(Position(line + 1, column), Position(line + 1, column + len(at)))
    return Finding(kind, code, Severity.WARNING, "", "", (), None, "script.py", place, 1, (), facts=facts)


def changed(body: str, at: str, code: str, **more: Any) -> dict[str, str]:
    """The function as each fix would have it, by title."""
    text = textwrap.dedent(body).lstrip("\n")
    fixes = proposals(found(text, at, code, **more), text)
    return {fix.title: applied(text, fix.edits) for fix in reversed(fixes)}


WHERE = "Compute both sides and choose by value"


@pytest.mark.parametrize(
    ("before", "at", "after"),
    [
        (
            """
            if m > 1:
                y = x - 1  # too large
            elif m < -1:
                y = x + 1
            else:
                y = x * 2
            return y
            """, "m > 1",
            """
            # too large
            y = torch.where(m > 1, x - 1, torch.where(m < -1, x + 1, x * 2))
            return y
            """,
        ),
        (
            """
            if x.isinf().any() or x.isnan().any():
                limit = torch.finfo(x.dtype).max - 1000
                x = torch.clamp(x, min=-limit, max=limit)
            return x
            """, "x.isinf().any() or",
            """
            chosen = x.isinf().any() | x.isnan().any()
            new_limit = torch.finfo(x.dtype).max - 1000
            x = torch.where(chosen, torch.clamp(x, min=-new_limit, max=new_limit), x)
            return x
            """,
        ),
        (
            """
            # the first row
            if x[0].sum() > 0:
                x[0] = x[0] * 3
            return x
            """, "x[0].sum() > 0",
            """
            # the first row
            chosen = x[0].sum() > 0
            x_changed = x.clone()
            x_changed[0] = x[0] * 3
            x = torch.where(chosen, x_changed, x)
            return x
            """,
        ),
        (
            """
            if flag and x.sum().item() > 0:
                return x + 1
            return x - 1
            """, "flag and",
            """
            return torch.where((x.sum() > 0) & flag, x + 1, x - 1)
            """,
        ),
        (
            """
            if not torch.equal(x, m):
                x.mul_(2)
            return x
            """, "not torch",
            """
            x = torch.where(~(x == m).all(), x.mul(2), x)
            return x
            """,
        ),
    ],
)  # fmt: skip
def test_branches(before: str, at: str, after: str) -> None:
    head = "import torch\n\ndef f(x, m, flag):\n"
    body, wanted = (
        head + textwrap.indent(textwrap.dedent(part).strip("\n"), "    ") + "\n" for part in (before, after)
    )
    assert changed(body, at, "GB0170")[WHERE] == wanted


@pytest.mark.parametrize(
    "body",
    [
        "if x.sum() > 0:\n        print(x)\n    return x",  # an effect
        "if x.sum() > 0:\n        self.y = x\n    return x",  # a change of an object
        "if x.sum() > 0:\n        return x, 1\n    return x, 2",  # not tensors
        "if x in m:\n        x = x + 1\n    return x",  # a decision about containers that Python makes
        "if m is None:\n        x = x + 1\n    return x",  # a decision of Python's
        "for y in m:\n        if x.sum() > 0:\n            return y\n    return x",  # ends the loop
    ],
)
def test_branches_that_do_more_than_choose(body: str) -> None:
    text = f"import torch\n\ndef f(self, x, m):\n    {body}\n"
    at = next(test for test in ("x in m", "m is None", "x.sum() > 0") if test in text)
    assert WHERE not in changed(text, at, "GB0170")


CASES: dict[str, tuple[str, str, str, dict[str, Any], str]] = {
    "clocks": (
        "import time\nimport torch\n\ndef f(x):\n    start = time.time()  # begin\n    y = x + 1\n    return y, time.time() - start\n",
        "time.time()", "GB0007", {},
        "    start = 0.0 if torch.compiler.is_compiling() else time.time()  # begin\n",
    ),
    "random numbers": (
        "import random\nimport torch\n\ndef f(x):\n    return x * random.choice(SCALES)\n",
        "random.choice(SCALES)", "GB0007", {}, "    return x * SCALES[random.randrange(len(SCALES))]\n",
    ),
    "copies": (
        "import copy\nimport torch\n\ndef f(x):\n    state = {'h': x}\n    saved = copy.deepcopy(state)\n    return saved\n",
        "copy.deepcopy(state)", "GB4198", {},
        "    saved = {key: value.detach().clone() if isinstance(value, torch.Tensor) else value for key, value in state.items()}\n",
    ),
    "constants": (
        "import numpy as np\nimport torch\n\n\n# rates\ndef f(x):\n    rates = [float(v) for v in np.linspace(0, 1, 4)]\n    return x * rates[0]\n",
        "float(v)", "GB0033", {},
        "\n_RATES = [float(v) for v in np.linspace(0, 1, 4)]\n\n\n# rates\ndef f(x):\n    rates = _RATES\n",
    ),
    "output of a block": (
        "import warnings\nimport torch\n\ndef f(x):\n    with warnings.catch_warnings():\n        warnings.warn('odd')\n    return x\n",
        "warnings.warn", "GB0007", {},
        "    if not torch.compiler.is_compiling():\n        with warnings.catch_warnings():\n            warnings.warn('odd')\n    return x\n",
    ),
    "contexts of warnings": (
        "import warnings\nimport torch\n\ndef f(x):\n    with warnings.catch_warnings():\n        warnings.simplefilter('ignore')\n        y = x + 1\n    return y\n",
        "warnings.simplefilter", "GB0007", {}, "def f(x):\n    y = x + 1\n    return y\n",
    ),
    "output": (
        "import logging\nimport torch\n\ndef f(x):\n    # said\n    logging.getLogger('m').warning('odd')\n    return x\n",
        "logging.getLogger('m')", "GB6215", {},
        "    # said\n    if not torch.compiler.is_compiling():\n        logging.getLogger('m').warning('odd')\n",
    ),
    "operator prints": (
        "import torch\n\ndef f(x):\n    # said\n    print(x)  # why\n    return x\n", "print(x)", "GB0059", {},
        "    # said\n    torch._higher_order_ops.print(\"{}\", x)  # why\n",
    ),
    "asserts": (
        "import torch\n\ndef f(x, n):\n    # why\n    assert x.max().item() <= n, 'too large'\n    return x\n", "x.max().item()", "GB0124", {},
        "    # why\n    torch._assert_async((x.max() <= n).all(), 'too large')\n",
    ),
    "dropped layers": (
        "import torch\n\ndef f(self, h):\n    for layer in self.layers:\n        if torch.rand([]) < self.drop:\n            continue\n        h = layer(h)\n    return h\n",
        "torch.rand", "GB0170", {},
        "        skipped = torch.rand([]) < self.drop\n        h_before = h\n        h = layer(h)\n"
        "        if skipped is not None:\n            h = torch.where(skipped, h_before, h)\n",
    ),
    "masks": (
        "import torch\n\ndef f(x, mask):\n    return x[mask].mean()\n", "x[mask]", "GB0036", {},
        "    return torch.where(mask, x, 0).sum() / mask.sum()\n",
    ),
    "bounds": (
        "import torch\n\ndef f(x, n):\n    k = n.item()\n    if k > 9:\n        raise ValueError\n    return x[:k]\n",
        "n.item()", "GB0124", {}, "    k = n.item()\n    torch._check(k <= 9)\n",
    ),
    "plain functions": (
        "import torch\n\ndef f(x):\n    for y in x:\n        if y > 0:\n            g(y)\n", "y > 0", "GB0170",
        {"facts": BreakFacts(leaves_function_to_python=True)}, "@torch.compiler.disable(recursive=False)\ndef f(x):\n",
    ),
    "helpers": (
        "import torch\n\ndef helper(x):\n    return odd(x)\n\ndef f(x):\n    return helper(x)\n", "odd(x)", "GB0007", {},
        "mutates_args=())\ndef helper(x: torch.Tensor) -> torch.Tensor:\n",
    ),
    "left out functions": (
        "import torch\n\ndef helper(x):\n    return odd(x)\n\ndef f(x):\n    return helper(x)\n", "odd(x)", "GB0007", {},
        "@torch.compiler.disable\ndef helper(x):\n",
    ),
    "numbers": (
        "import torch\n\nclass Net(torch.nn.Module):\n    def __init__(self):\n        self.scale = 1.0\n    def forward(self, x):\n        return x * self.scale\n\nnet.scale = 0.5\n",
        "def forward", "recompile-value",
        {"kind": "recompilation", "facts": RecompilationFacts("self.scale", number="1.0")},
        "net.scale = torch.tensor(0.5, dtype=torch.float64)\n",
    ),
    "saved values": (
        "import os\nimport torch\n\ndef f(x):\n    return x * int(os.environ['SCALE'])\n", "int(os", NOT_PORTABLE,
        {"kind": "specialization"}, "_VALUE_5 = torch.tensor(int(os.environ['SCALE']))\n",
    ),
    "saved paths": (
        "import torch\n\ndef f(x):\n    if 'prod' in __file__:\n        return x\n    return x + 1\n", "__file__", NOT_PORTABLE,
        {"kind": "specialization"}, "_VALUE_4 = torch.tensor('prod' in __file__)\n",
    ),
    "saved addresses": (
        "import torch\n\ndef f(x, y):\n    return x if id(x) != id(y) else y\n", "id(x)", NOT_PORTABLE,
        {"kind": "specialization"}, "    return x if x is not y else y\n",
    ),
    "sizes": (
        "import torch\n\ndef f(x):\n    return x\n\ng = torch.compile(f, backend='eager')\n", "def f", "recompile-size",
        {"kind": "recompilation"}, "g = torch.compile(f, backend='eager', dynamic=True)\n",
    ),
}  # fmt: skip


APART = (
    "after the call", "before the call", "branches", "comments", "counters", "gradient modes", "indices", "loop bodies", "loop exits", "lookups", "messages", "plain numbers",
    "size steps", "sizes in buckets", "NumPy draws",
)  # fmt: skip
"""Those with tests of their own."""


def test_each_rule_has_a_case() -> None:
    assert {rule.name for rule in all_rules()} <= CASES.keys() | set(APART)


@pytest.mark.parametrize("name", CASES)
def test_each_family(name: str) -> None:
    text, at, code, more, wanted = CASES[name]
    assert any(wanted in after for after in changed(text, at, code, **more).values()), changed(text, at, code, **more)


@pytest.mark.parametrize(
    ("body", "is_offered"),
    [
        ("return odd(x)", True),
        ("return odd(x) * np.random.rand()", False),
        ("seen.append(x)\n    return odd(x)", False),
        ("global count\n    count = count + 1\n    return odd(x)", False),
    ],
)
def test_a_helper_that_acts_on_its_next_call_becomes_no_operator(body: str, is_offered: bool) -> None:
    text = f"import torch\n\ndef helper(x):\n    {body}\n\ndef f(x):\n    return helper(x)\n"
    found = changed(text, "odd(x)", "GB0007")
    assert ("Make the helper an operator that the graph calls as a whole" in found) is is_offered


def test_what_varies_is_marked_before_the_first_call(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    text = "import torch\ng = torch.compile(f)\nfor n in (2, 3):\n    # a batch\n    g(torch.ones(n), y)\n"
    script.write_text(text)
    marked = ("torch._dynamo.mark_dynamic(x, 0)", "if y is not None: torch._dynamo.mark_dynamic(y, 1)")
    marks = Marks(str(script), 5, (("x", "torch.ones(n)"),), marked, are_unbacked=False)
    assert (
        marks.hint
        == f"Before the call on line 5: `x = torch.ones(n)`, `{'`, `'.join(marked)}`, and pass `x` in the call"
    )
    fix = marks.fix
    assert fix is not None and fix.file == str(script)
    made = "\n    ".join(["x = torch.ones(n)", *marked, "g(x, y)\n"])
    assert applied(text, fix.edits) == text.replace("g(torch.ones(n), y)\n", made)


@pytest.mark.parametrize(
    ("call", "varying", "expected"),
    [
        ("g(*make(n))", {"x": (2, 3)},
         "arguments = make(n)\ntorch._dynamo.mark_dynamic(arguments[0], [2, 3])\ng(*arguments)"),
        ("g(a, y=b)", {"x": (0,), "y['m']": (1,)},
         "torch._dynamo.mark_dynamic(a, 0)\ntorch._dynamo.mark_dynamic(b['m'], 1)\ng(a, y=b)"),
        ("g(make(1), y=make(2))", {"y": (0,)},
         "argument_0 = make(1)\ny_2 = make(2)\ntorch._dynamo.mark_dynamic(y_2, 0)\ng(argument_0, y=y_2)"),
        ("g(**all)", {"x": (0,)}, None),
    ],
)  # fmt: skip
def test_all_sizes_that_vary_are_marked_before_the_call(
    call: str, varying: dict[str, tuple[int, ...]], expected: str | None
) -> None:
    text = f"import torch\n\ndef f(x, y):\n    return x + y\n\ng = torch.compile(f)\n{call}\n"
    facts = RecompilationFacts("x", varying=tuple(VaryingSize(*size) for size in varying.items()))
    finding = found(text, "x + y", "recompile-size", "recompilation", facts)
    place = Range(Position(7, 0), Position(7, len(call)))
    finding = dataclasses.replace(finding, related=(Related("script.py", place, "", RelatedRole.TRIGGER),))
    texts = [applied(text, fix.edits) for fix in proposals(finding, text) if fix.title.startswith("Mark")]
    assert texts == ([] if expected is None else [text.replace(f"{call}\n", f"{expected}\n")])


LAYERS = """\
import torch

def f(self, h):
    for layer in self.layers:
        # about layers
        BEFORE
        if not drop{other}:
            # about this one
            h = layer(
                h,
            )
    return h
"""
FLAG = """drop = False
        if self.training:
            p = torch.rand([])
            if p < self.drop:  # skip it
                drop = True
"""
COMPARED = """drop = False
        if self.training:
            drop = torch.rand([]) < self.drop
"""
AFTER = "        # about this one\n        h_before = h\n        h = layer(\n            h,\n        )\n        if drop is not False{}:\n            h = torch.where(drop, h_before, h)\n"


@pytest.mark.parametrize(
    ("before", "at", "other", "set", "test"),
    [
        (FLAG, "p < self.drop", "", "            drop = p < self.drop\n", ""),
        (COMPARED, "not drop", " or synced", "            drop = torch.rand([]) < self.drop\n", " and not synced"),
    ],
)
def test_flags_of_dropped_layers(before: str, at: str, other: str, set: str, test: str) -> None:
    text = LAYERS.format(other=other).replace("BEFORE", before)
    fixes = proposals(found(text, at, "GB0170"), text)
    after = applied(text, next(fix for fix in fixes if fix.title.startswith("Compute the layer")).edits)
    assert set in after and after.endswith(f"{AFTER.format(test)}    return h\n")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("drop = True", "drop = self.odd"),
        ("h = layer(\n                h,\n            )", "h = layer(x)"),
        ("h = layer(\n                h,\n            )", "h, y = layer(h)"),
        ("    return h", "        else:\n            h = h + 1\n    return h"),
        ("not drop", "not drop or h > 1"),
    ],
)
def test_layers_that_are_not_dropped_like_that(old: str, new: str) -> None:
    text = LAYERS.format(other="").replace("BEFORE", FLAG).replace(old, new)
    fixes = proposals(found(text, "p < self.drop", "GB0170"), text)
    assert not [fix for fix in fixes if fix.title.startswith("Compute the layer")]


@pytest.mark.parametrize(
    ("call", "printed"),
    [
        ("print('mean', y)", '("mean {}", y)'),
        ("print(f'{y.mean():.3f} of {{x}}', y, \"{a}\")", '("{:.3f} of {{x}} {} {{a}}", y.mean(), y)'),
        ("print('only words')", None),
        ("print(y, file=log)", None),
        ("print(*y)", None),
        ("print(f'{y!r}')", None),
        ("print(f'{y=}')", None),
        ("print(f'{y:{width}}')", None),
        ("logging.info(y)", None),
    ],
)
def test_printing_from_the_graph(call: str, printed: str | None) -> None:
    after = changed(f"import torch, logging\n\ndef f(x):\n    {call}\n", call, "GB0059").get("Print from the graph")
    expected = f"import torch, logging\n\ndef f(x):\n    torch._higher_order_ops.print{printed}\n"
    assert after == (expected if printed else None)


@pytest.mark.parametrize(
    ("call", "after"),
    [
        ("f(x, 0.1 * n)", "f(x, torch.tensor(0.1 * n, dtype=torch.float64))"),
        ("f(x, scale=0.1)", "f(x, scale=torch.tensor(0.1, dtype=torch.float64))"),
        ("f(*both)", None),
        ("f(x)", None),
    ],
)
def test_a_number_of_a_call(call: str, after: str | None) -> None:
    text = f"import torch\n\ndef f(x, scale=1.0):\n    return x * scale\n\n{call}\n"
    place = found(text, call, "").range
    one = found(text, "def f", "recompile-value", "recompilation", RecompilationFacts("scale", number="1.0"))
    one = dataclasses.replace(one, related=(Related("script.py", place, "", RelatedRole.TRIGGER),))
    titles = {fix.title: applied(text, fix.edits) for fix in proposals(one, text)}
    assert titles.get("Pass the number as a tensor") == (text.replace(call, after) if after else None)


def test_a_comment_in_a_condition_stays() -> None:
    text = "import torch\n\ndef f(x):\n    if (x.sum()  # why\n      .item()) > 0:\n        x = x + 1\n    return x\n"
    after = "import torch\n\ndef f(x):\n    # why\n    x = torch.where((x.sum()) > 0, x + 1, x)\n    return x\n"
    assert changed(text, "x.sum()", "GB0170")[WHERE] == after


def test_an_expression_on_several_lines_stays_one() -> None:
    text = "import torch\n\ndef f(x):\n    if x.any():\n        x = (\n            x\n            .sin()\n        )\n    return x\n"
    after = "import torch\n\ndef f(x):\n    x = torch.where(x.any(), (x\n        .sin()), x)\n    return x\n"
    assert changed(text, "x.any()", "GB0170")[WHERE] == after


def test_a_condition_on_several_lines_gets_a_name() -> None:
    text = "import torch\n\ndef f(x, y):\n    if (\n        x.sum()\n        > 0\n    ):\n        x, y = y, x\n    return x\n"
    after = changed(text, "x.sum()", "GB0170")[WHERE]
    assert "    chosen = (x.sum()\n        > 0)\n" in after


def test_the_dearest_is_offered_last() -> None:
    text = "import torch\n\ndef helper(x):\n    y = 1\n    if x.sum() > 0:\n        x = x + 1\n    return x\n\ndef f(x):\n    return helper(x)\n"
    titles = [fix.title for fix in proposals(found(text, "x.sum() > 0", "GB0170"), text)]
    assert (titles[0], titles[-1]) == (WHERE, "Leave the helper out of compiled code")
    assert all("two graphs more" in fix.caveat for fix in proposals(found(text, "x.sum() > 0", "GB0170"), text)[-1:])


def test_a_rule_that_fails_costs_its_own_fixes_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(source: object, finding: object) -> object:
        raise RuntimeError

    broken = Rule("broken", ("graph-break",), fails)  # type: ignore[arg-type]
    rules = (broken, *all_rules())
    monkeypatch.setattr("irscope.fixing.proposals.all_rules", lambda: rules)
    text = "import torch\n\ndef f(x):\n    if x.sum() > 0:\n        x = x + 1\n    return x\n"
    assert [fix.title for fix in proposals(found(text, "x.sum() > 0", "GB0170"), text)] == [WHERE]


@pytest.mark.parametrize("text", ["def f(:\n", "x" * ((1 << 20) + 1)])
def test_texts_that_are_not_read(text: str) -> None:
    place = Range(Position(1, 0), Position(1, 1))
    finding = Finding("graph-break", "GB0170", Severity.WARNING, "", "", (), None, "script.py", place, 1, ())
    assert proposals(finding, text) == ()
