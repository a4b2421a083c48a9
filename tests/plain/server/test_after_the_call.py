"""What compiled code makes of its tensors for plain Python, done by a plain function after it."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import pytest
from irscope.driver.fixing.trying import Trying
from irscope.driver.trials.gains import operations
from irscope.driver.trials.proving import Gain, Proof, Status
from irscope.fixing.rules.after_the_call import RULE
from irscope.fixing.source import Source
from irscope.protocol import Compile, CompileOutcome, Fix, Related, RelatedRole
from test_fix_families import changed, found

TITLE = "Do it after the compiled code, with what that returns"
HEAD = "import time\n\nimport torch\n\nrows = []\nnet = torch.nn.Linear(4, 4)\n\n"
PLAIN = "\n\n\n@torch.compiler.disable(recursive=False)\ndef f(x):\n"


def made(body: str, at: str) -> str | None:
    """The text of a compiled function with a body, in which something breaks the graph."""
    after = changed(f"{HEAD}@torch.compile\ndef f(x):\n{body}", at, "GB0124").get(TITLE)
    return after.removeprefix(HEAD) if after is not None else None


@pytest.mark.parametrize(
    ("body", "compiled", "plain"),
    [
        (  # the order of effects stays, and work that does not need them is compiled
            "    y = net(x)\n    # of each call\n    rows.append(y.max().item())\n    z = y.sin()\n    rows.append(2)\n    return z\n",
            "    y = net(x)\n    z = y.sin()\n    max_value = y.max()\n    return z, max_value",
            "    z, max_value = f_before(x)\n    # of each call\n    rows.append(max_value.item())\n    rows.append(2)\n    return z",
        ),
        (
            "    y = net(x)\n    return y * 2, {'sum': float(y.sum()), 'max': y.max().item()}\n",
            "    y = net(x)\n    value = y * 2\n    sum_value = y.sum()\n    max_value = y.max()\n"
            "    return value, sum_value, max_value",
            "    value, sum_value, max_value = f_before(x)\n"
            "    return value, {'sum': float(sum_value), 'max': max_value.item()}",
        ),
        (  # a clock measures the compiled code
            '    """Of x."""\n    start = time.time()\n    y = net(x)\n    rows.append(time.time() - start)\n    return y.max().item()\n',
            "    y = net(x)\n    max_value = y.max()\n    return max_value",
            '    """Of x."""\n    start = time.time()\n    max_value = f_before(x)\n    rows.append(time.time() - start)\n'
            "    return max_value.item()",
        ),
        (  # what is only done sometimes is not computed always
            "    y = net(x)\n    if len(rows) < 3:\n        rows.append(y.max().item())\n    return y\n",
            "    y = net(x)\n    return y",
            "    y = f_before(x)\n    if len(rows) < 3:\n        rows.append(y.max().item())\n    return y",
        ),
    ],
)
def test_what_is_done_after(body: str, compiled: str, plain: str) -> None:
    place = "time.time()" if "time.time()" in body else "y.max().item()"
    assert made(body, place) == f"@torch.compile\ndef f_before(x):\n{compiled}{PLAIN}{plain}\n"


@pytest.mark.parametrize(
    "body",
    [
        "    y = net(x)\n    if y.max().item() > 0:\n        return y\n    return x\n",  # it returns in between
        "    for n in range(3):\n        rows.append(x.max().item())\n",  # nothing would be compiled
        "    y = net(x)\n    for n in range(3):\n        y = y * y.max().item()\n    return y\n",  # the work is in the loop
    ],
)
def test_where_it_is_not_offered(body: str) -> None:
    assert made(body, ".max().item()") is None


def test_a_method_whose_helper_breaks() -> None:
    """The helper is plain then, and so are the methods that only call the one that is split."""
    text = f"""{HEAD}class Net(torch.nn.Module):
    def log(self, value):
        rows.append(value.item())

    def loss(self, x):
        y = net(x)
        self.log(y)
        return y

    def forward(self, x):
        return self.loss(x)
"""
    places = [found(text, at, "GB0124").range for at in ("self.loss(x)", "self.log(y)")]
    finding = found(text, "value.item()", "GB0124")
    callers = tuple(Related(finding.file, place, "called", RelatedRole.CALLER) for place in places)
    (proposal,) = RULE.propose(Source(text), dataclasses.replace(finding, related=callers))
    after = proposal.text
    plain, disabled = "    @torch.compiler.disable(recursive=False)\n    def", "    @torch.compiler.disable\n    def"
    assert f"{disabled} log" in after and f"{plain} loss" in after and f"{plain} forward" in after
    assert "    def loss_before(self, x):\n        y = net(x)\n        return y\n" in after


@pytest.mark.parametrize(
    ("after", "status", "words"),
    [
        (10, Status.VERIFIED, ""),
        (9, Status.VERIFIED, "Not compiled any more: 1 of 10 operations."),
        (4, Status.UNPROVEN, "Not compiled any more: 6 of 10 operations."),
    ],
)
def test_fewer_operations_are_no_gain(after: int, status: Status, words: str) -> None:
    finding = dataclasses.replace(found("f(x)\n", "f(x)", "GB0124"), fixes=(Fix("Move it", "", ()),))
    proof = Proof(Status.VERIFIED, "", (finding,), gain=Gain((2, 1), (1.0, 1.0), (10, after)))
    prover: Any = SimpleNamespace(
        original=SimpleNamespace(findings=(finding,), compiles=()),
        text_of=lambda path: "f(x)\n",
        prove=lambda texts, finding: (proof, None),
    )
    (tried,) = Trying(prover, 10, with_rules=False).finding(finding).candidates
    assert (tried.proof.status, tried.fix.caveat) == (status, words)


def test_recompiles_do_not_count_twice() -> None:
    one = Compile("0/0", "f", "train.py", 1, CompileOutcome.COMPILED, 0, 3, 0.1)
    compiles = [one, dataclasses.replace(one, id="0/1", graph_ops=5), dataclasses.replace(one, id="1/0", graph_ops=2)]
    assert operations(compiles) == 7
