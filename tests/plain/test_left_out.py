"""A changed text that leaves out a call or a change with effects, or does it at another time, is told from one that does not."""

from __future__ import annotations

from pathlib import Path

import pytest
from irscope.driver.driver import RunSpec
from irscope.driver.trials.proving import Prover, Status, Trial
from irscope.protocol import Finding, Outcome, OutcomeKind, Position, Range, Severity
from irscope.usercode.left_out import left_out

BODY = """\
import logging, queue, random, time
import torch

opt, seen = make(), []
logger = logging.getLogger(__name__)

class Net(torch.nn.Module):
    def forward(self, x, it, handle, callback):
        y = x.sin()
        if x.shape[0] > 2:
            EFFECT
        return y * 2
"""
EFFECTS = (
    "opt.step()", "schedule.step()", "self.buffer.append(y)", "self.calls += 1", "self.state['n'] = 1", "metric.update(y)",
    "ema.update(self)", "callback(y)", "jobs.put(y)", "handle.write('a')", "requests.post('url', y)", "helper(y)", "next(it)",
    "self.log('loss', y)", "y = self.linear(y)", "print(opt.step())", "seen.add(y)", "del self.kept", "time.sleep(1)",
    "self.total.add_(1)", "print(y, file=handle)", "keeper.count()", "keeper.strip()",
)  # fmt: skip
GUARD = "if not torch.compiler.is_compiling():\n                {}"


def body(effect: str) -> str:
    return BODY.replace("EFFECT", effect)


@pytest.mark.parametrize("effect", EFFECTS)
def test_an_effect_that_is_left_out_is_named(effect: str) -> None:
    text = body(effect)
    what = "opt.step()" if "opt" in effect else "self.linear(y)" if "linear" in effect else effect
    assert left_out(text, text) == ""
    assert left_out(text, body(GUARD.format(effect))) == f"This leaves out `{what}` while compiling."
    assert left_out(text, body("pass")) == f"This leaves out `{what}`."
    early = "y = x.sin()\n", "if torch.compiler.is_compiling():\n            return x\n        y = x.sin()\n"
    assert left_out(text, text.replace(*early)) == f"This leaves out `{what}` while compiling."


@pytest.mark.parametrize(
    "other",
    [
        "torch.compiler.is_compiling() or opt.step()", "None if torch.compiler.is_compiling() else opt.step()",
        "if False:\n                opt.step()", "if plain:\n                opt.step()", "if asks():\n                opt.step()",
        "while not torch.compiler.is_compiling():\n                opt.step()\n                break",
        "for _ in range(0):\n                opt.step()", "if x.any():\n                opt.step()", "lambda: opt.step()",
        "def inner():\n                opt.step()", "return y\n            opt.step()", "# opt.step()\n            pass", "opt.step",
        "[opt.step() for _ in () if torch.compiler.is_compiling()]", "'opt.step()'", "fake.step()", "raise ValueError(opt.step())",
    ],
)  # fmt: skip
def test_however_it_is_left_out(other: str) -> None:
    after = body(other).replace(
        "class Net", "plain = not torch.compiler.is_compiling()\n\ndef asks():\n    return plain\n\nclass Net"
    )
    lost = left_out(body("opt.step()"), after)
    assert bool(lost) is ("raise" not in other), lost
    assert "opt.step()" in lost or not lost


def test_a_condition_that_was_there_already_may_be_one_on_compiling() -> None:
    text = body(GUARD.format("opt.step()"))
    assert left_out(text, text.replace("y * 2", "y + y")) == ""
    assert left_out(text, body("pass")) == ""


def test_a_changed_condition_counts() -> None:
    text = body("opt.step()")
    never = text.replace("x.shape[0] > 2", "x.shape[0] > 2 and not torch.compiler.is_compiling()")
    assert left_out(text, never) == "This leaves out `opt.step()` while compiling."
    assert left_out(text, text.replace("x.shape[0] > 2", "x.shape[0] > 9")) == "This does `opt.step()` at another time, or not always."  # fmt: skip
    clock = text.replace("x.shape[0] > 2", "time.time() - self.last > 5")
    zero = clock.replace("time.time()", "(0.0 if torch.compiler.is_compiling() else time.time())")
    assert left_out(clock, zero) == "This leaves out `opt.step()` while compiling."


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # output, with an `if` around it
        ("print(y.mean())", GUARD.format("print(y.mean())")), ("logger.info(y)", "pass"),
        # operations on tensors, which a proof compares
        ("y = y[: int(y.max().item())]", "y = y[: y.max()]"), ("y.mul_(2)", "y = torch.where(y > 0, y.mul(2), y)"),
        ("y[0] = y[0] * 3", "y = torch.cat([y[:1] * 3, y[1:]])"), ("y = random.choice([1.0, 2.0])", "y = random.randrange(2)"),
        ("raise ValueError(f'{y}')", "torch._check(True)"), ("torch._dynamo.graph_break()", "pass"),
        # the same effects, written in another way
        ("self.calls += 1", "self.calls = self.calls + 1"), ("self.calls += 1", "self.calls.add_(1)"),
        ("self.buffer.append(y.item())", "self.buffer.append(y.detach())"),
        ("y = helper(y) if y.any() else helper(-y)", "y = torch.where(y.any(), helper(y), helper(-y))"),
        ("if y.any():\n                self.state = 1\n            else:\n                self.state = 2", "self.state = torch.where(y.any(), 1, 2)"),
        ("y = helper(y)", "y = torch.cond(y, lambda: helper(y), lambda: y)\n            helper(y)"),
    ],
)  # fmt: skip
def test_what_is_no_loss(before: str, after: str) -> None:
    assert left_out(body(before), body(after)) == ""


def test_a_condition_that_gets_a_name_stays_that_condition() -> None:
    before = "import torch\n\ndef f(x):\n    if x.sum() > 0:\n        opt.step()\n    return x\n"
    after = "import torch\n\ndef f(x):\n    decided = bool(x.sum() > 0)\n    return rest(x, decided)\n\ndef rest(x, decided):\n    if decided:\n        opt.step()\n    return x\n"  # fmt: skip
    assert left_out(before, after) == ""
    assert left_out(before, after.replace("bool(x.sum() > 0)", "False")) != ""
    assert left_out(before, after.replace("return rest(x, decided)", "return x")) == "This leaves out `opt.step()` while compiling."  # fmt: skip


MOVED = """\
import random, torch

def f(x):
    EFFECT
    return f_after(x)

@torch.compile
def f_after(x):
    y = net(x)
    return y
"""


@pytest.mark.parametrize(
    ("effect", "is_later"),
    [("opt.step()", True), ("seen.append(1)", True), ("random.seed(1)", False), ("print(1)", False)],
)
def test_an_effect_that_overtakes_what_was_before_it(effect: str, is_later: bool) -> None:
    after = MOVED.replace("EFFECT", effect)
    before = f"import random, torch\n\n@torch.compile\ndef f(x):\n    y = net(x)\n    {effect}\n    return y\n"
    assert left_out(before, after) == (f"This does `{effect}` at another time." if is_later else "")
    first = f"import random, torch\n\n@torch.compile\ndef f(x):\n    {effect}\n    y = net(x)\n    return y\n"
    assert left_out(first, after) == ""
    once = first.replace(f"    {effect}\n", "").replace("@torch", f"{effect}\n\n@torch")
    assert bool(left_out(first, once)) is (effect != "print(1)")


@pytest.mark.parametrize(
    ("mark", "lost"),
    [
        ("torch._dynamo.config.ignore_logging_functions.add(opt.step)", True),
        ("torch._dynamo.config.reorderable_logging_functions.add(opt.step)", True),
        ("torch._dynamo.config.ignore_logging_functions = {opt.step}", True),
        ("torch._dynamo.config.ignore_logging_functions.add(logger.info)", False),
        ("torch._dynamo.config.reorderable_logging_functions.add(print)", False),
        ("helper = torch._dynamo.nonstrict_trace(helper)", True),
        ("helper = torch.library.custom_op('a::b', mutates_args=())(helper)", True),
        ("helper = torch.compiler.disable(helper)", False),
    ],
)
def test_what_the_compiler_is_told_to_leave_out(mark: str, lost: bool) -> None:
    text = body("opt.step()") + "\ndef helper(x):\n    seen.append(x)\n    return x\n"
    assert bool(left_out(text, f"{text}{mark}\n")) is lost


@pytest.mark.parametrize(
    ("decorator", "inside", "lost"),
    [
        ("torch._dynamo.nonstrict_trace", "seen.append(x)", "This does `seen.append(x)` only while tracing."),
        ("torch.library.custom_op('a::b', mutates_args=())", "seen.append(x)", "This may leave out `seen.append(x)`."),
        ("torch._dynamo.nonstrict_trace", "x = np.sort(x)", ""), ("torch.compiler.disable", "seen.append(x)", ""),
        ("torch.library.custom_op('a::b', mutates_args=())", "x = np.sort(x)", ""),
    ],
)  # fmt: skip
def test_a_helper_that_is_not_traced(decorator: str, inside: str, lost: str) -> None:
    text = f"import numpy as np\nimport torch\n\ndef helper(x):\n    {inside}\n    return x\n"
    assert left_out(text, text.replace("def helper", f"@{decorator}\ndef helper")) == lost


def test_a_flag_of_a_gradient_is_an_effect() -> None:
    flag = "import torch\n\ndef f(x):\n    y = x[:, None]\n    y.requires_grad_()\n    return y.sin()\n"
    guarded = flag.replace("    y.req", "    if not torch.compiler.is_compiling():\n        y.req")
    assert left_out(flag, guarded) == "This leaves out `y.requires_grad_()` while compiling."


def test_texts_that_cannot_be_compared() -> None:
    assert left_out("not Python (", "pass") == left_out("pass", "not Python (") == ""
    deep = f"x = {'+'.join(['f()'] * 900)}\n"
    assert "nested too deeply" in left_out(deep, f"{deep}y = 1\n")


def test_methods_of_one_name_are_told_apart() -> None:
    text = "import torch\n" + "".join(
        f"\nclass {name}:\n    def forward(self, h, m):\n        {first}h = self.net(h)\n        h[m] = 0\n        return self.end(h)\n"
        for name, first in (("A", "a = 1; "), ("B", ""))
    )
    assert left_out(text, text.replace("class B", "x = 1\n\nclass B").replace("self.end(h)", "self.end(h) + 1")) == ""
    assert left_out(text, text.replace("        h[m] = 0\n        return self.end(h)\n\nclass B", "        return self.end(h)\n\nclass B")) != ""  # fmt: skip


def test_a_copy_of_a_function_of_a_library_keeps_its_effects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Prover, "run", lambda *_: pytest.fail("it was run"))
    library = tmp_path / "site-packages" / "parts" / "steps.py"
    library.parent.mkdir(parents=True)
    library.write_text(
        "class Step:\n    def run(self, x):\n        self.seen.append(x)\n        print(x)\n        return x\n"
    )
    script = tmp_path / "script.py"
    script.write_text("import torch\n\ntorch.compile(print)\n")
    copy = (
        "import torch\nfrom parts import steps\n\n\ndef run_without_break(self, x):\n{}    return x\n\n\n"
        "steps.Step.run.__code__ = run_without_break.__code__\n\ntorch.compile(print)\n"
    )
    with Prover(RunSpec(str(script), cwd=str(tmp_path))) as prover:
        prover.original = prover.eager = Trial(Outcome(OutcomeKind.COMPLETED, 0, "", 0.1), (), (), ([], []), None)
        prover.text_of(str(library))
        where = Range(Position(3, 0), Position(3, 1))
        finding = Finding("graph-break", "GB0007", Severity.WARNING, "", "", (), None, str(script), where, 1, ())
        proof, _ = prover.prove({str(script): copy.format("    print(x)\n")}, finding)
        assert (proof.status, proof.reason) == (Status.UNPROVEN, "This leaves out `self.seen.append(x)`.")
        assert prover._left_out({str(script): copy.format("    self.seen.append(x)\n")}) == ""
