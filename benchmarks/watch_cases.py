"""Whether `irscope watch` names what was planted: 30 programs that go wrong at a known step, line and culprit.

    .venv/bin/python benchmarks/watch_cases.py [NAME…]

Each program is run as a user runs it; ``# @`` marks the line that has to be named.  A case is right if there is one
finding at that line, with the step and the code that stand here; for a fault of the model, the data or the optimizer
the parameters of the steps before have to become the same again, bit for bit, where the step is not the first of its
window.  Prints each case and the sum; exits with 1 if one is wrong.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HEAD = """\
import torch
import torch.nn.functional as F

torch.manual_seed(0)
"""
TRAIN = """
model = Net()
optimizer = torch.optim.{optimizer}(model.parameters(), lr={rate})
compiled = torch.compile(model)
for step in range(1, {steps} + 1):
    x, y = torch.randn(8, 16), torch.rand(8, 4)
    {plant}
    loss = {loss}
    optimizer.zero_grad()
    loss.backward()
    {before}
    optimizer.step()
"""
NET = """
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.n = torch.nn.Linear(16, 32), torch.nn.Linear(32, 4), torch.nn.LayerNorm(32)

    def forward(self, x, y):
        h = F.relu(self.a(x)){mark}
        {body}
"""
INFERENCE = """
@torch.compile
def f(x):
    {body}

with torch.no_grad():
    for step in range(1, {steps} + 1):
        x = torch.rand(8, 16) + 0.5
        {plant}
        f(x)
"""
WRONG_PASS = """
import torch._inductor.config

def scale(graph):
    for node in graph.find_nodes(op="call_function", target=torch.ops.aten.{old}.default):
        node.target = torch.ops.aten.{new}.default

torch._inductor.config.post_grad_custom_post_pass = scale
"""
WRONG_KERNEL = """
import torch._inductor.lowering as lowering

right = lowering.lowerings[torch.ops.aten.{op}.default]
lowering.lowerings[torch.ops.aten.{op}.default] = lambda x: lowering.{wrong}
"""


@dataclass(frozen=True)
class Case:
    """A program, and what has to be said of it."""

    text: str
    step: int
    code: str
    against: str = ""


def train(body: str, step: int, code: str, plant: str = "pass", **more: object) -> Case:
    """A training whose model computes ``body`` of its hidden layer ``h`` and the target ``y``, and returns the loss."""
    parts = {
        "optimizer": "SGD",
        "rate": 0.01,
        "steps": step + 2,
        "plant": plant,
        "loss": "compiled(x, y)",
        "before": "pass",
    }
    head = HEAD + str(more.pop("head", ""))
    net = NET.replace("{body}", body.replace("\n", "\n        ")).replace("{mark}", str(more.pop("mark", "")))
    return Case(head + net + TRAIN.format(**{**parts, **more}), step, code)


def inference(body: str, step: int, code: str, plant: str = "pass", head: str = "", against: str = "") -> Case:
    """Calls of a compiled function of ``x``, which is from 0.5 to 1.5."""
    text = INFERENCE.replace("{body}", body.replace("\n", "\n    ")).format(steps=step + 2, plant=plant)
    return Case(HEAD + head + text, step, code, against)


def at(step: int, what: str) -> str:
    """A statement of one step."""
    return f"if step == {step}: {what}"


MEAN = "return ((self.b(h) - y) ** 2).mean()"
M, C, D, OPT, LOSS = (f"non-finite-{who}" for who in ("model", "compiler", "data", "optimizer", "loss"))
CASES: dict[str, Case] = {
    # The model: numbers leave the range of an operation.
    "log-of-zero": train("return -(y * torch.log(F.relu(self.b(h)))).mean()  # @", 1, M),
    "log-of-zero-later": train("return -(y * torch.log(h.amax(1, keepdim=True))).mean()  # @", 11, M, at(11, "x[2] = 0; model.a.bias.data.fill_(-1)")),
    "zero-variance": train("h = (h - h.mean(1, keepdim=True)) / h.std(1, keepdim=True)  # @\n" + MEAN, 12, M, at(12, "x[1] = 0; model.a.bias.data.fill_(1)")),
    "fp16-softmax": inference("w = (x * 200).half()\nw = w @ w.T  # @\nreturn torch.exp(w.float()) / torch.exp(w.float()).sum(-1, keepdim=True)", 1, M),
    "fp16-later": inference("w = x.half() * 100\nw = w * 100  # @\nreturn w - w.amax(-1, keepdim=True)", 9, M, at(9, "x[1, 1] = 50")),
    "exp-overflow": inference("e = torch.exp(x * 50)  # @\nreturn e / e.sum(-1, keepdim=True)", 6, M, at(6, "x[0, 0] = 2")),
    "sqrt-of-negative": inference("return torch.sqrt(x - 0.4)  # @", 5, M, at(5, "x[0, 0] = 0.1")),
    "reciprocal": inference("r = 1 / (x - 0.25)  # @\nreturn r - r.amax()", 5, M, at(5, "x[0, 0] = 0.25")),
    "rsqrt": inference("return torch.rsqrt(x - 0.25) * x  # @", 4, M, at(4, "x[3, 0] = 0.25")),
    "acos": inference("return torch.acos(x - 0.5)  # @", 8, M, at(8, "x[3, 0] = 9")),
    "inf-minus-inf": inference("a = x * 1e38  # @\nreturn a - a.amax()", 3, M, at(3, "x[0, 0] = 1e3")),
    "norm-of-zero": inference("return x / x.norm(dim=1, keepdim=True)  # @", 7, M, at(7, "x[2] = 0")),
    "mask-all": inference("m = torch.where(x > 0.4, x, float('-inf'))\nreturn torch.softmax(m, -1)  # @", 6, M, at(6, "x[4] = 0")),
    "pow-negative": inference("return (x - 0.4) ** 0.5  # @", 4, M, at(4, "x[4, 4] = 0")),
    "backward-of-sqrt": train("return torch.sqrt(h).mean()  # @", 1, M),
    "backward-of-norm": train("n = h.norm(dim=1)\nreturn torch.sqrt(n * y.sum(1)).mean()  # @", 14, M, at(14, "y[0] = 0")),
    "exploding-rate": train("return ((self.b(h) - y) ** 4).mean()  # @", 2, M, rate=1e9),
    "library": train("h = F.normalize(h, eps=0.0)  # @\n" + MEAN, 10, M, at(10, "x[0] = 0; model.a.bias.data.fill_(-1)")),
    # The data.
    "bad-batch": train("h = self.n(h)\n" + MEAN, 2000, D, at(2000, "x[3, 3] = float('nan')"), mark="  # @"),
    "bad-target": train("return ((self.b(h) - y) ** 2).mean()  # @", 20, D, at(20, "y[3, 3] = float('inf')")),
    "bad-input": inference("return x * 2 + 1  # @", 15, D, at(15, "x[0, 3] = float('nan')")),
    # The optimizer, and the loss outside of compiled code.
    "optimizer": train(MEAN, 5, OPT, before="if step == 5: optimizer.param_groups[0]['lr'] = 3e38; model.b.weight.grad.mul_(1e9)"),
    "loss-outside": train("return self.b(h)", 6, LOSS, at(6, "y[0] = -100"), loss="torch.log(compiled(x, y) + y + 50).mean()"),
    # The compiler.
    "wrong-pass": inference("return torch.tanh(x * x)  # @", 1, C, head=WRONG_PASS.format(old="tanh", new="acosh")),
    "wrong-pass-later": inference("return torch.sin(x) * 2  # @", 9, C, at(9, "x[0, 0] = -3"), head=WRONG_PASS.format(old="sin", new="sqrt")),
    "wrong-kernel": inference("return torch.erf(x) + 1  # @", 1, C, head=WRONG_KERNEL.format(op="erf", wrong="sqrt(lowering.sub(right(x), 5.0))")),
    "wrong-kernel-later": inference("return torch.erf(x) + 1  # @", 7, C, at(7, "x[0, 0] = -1"), head=WRONG_KERNEL.format(op="erf", wrong="sqrt(x)")),
    # Drift: finite, and not what eager mode or float64 have.
    "drift": inference("return torch.erf(x) + 1  # @", 1, "divergence-lowering", head=WRONG_KERNEL.format(op="erf", wrong="mul(right(x), 1.01)"), against="float64"),
    "drift-later": inference("return torch.erf(x) + 1  # @", 6, "divergence-lowering", at(6, "x[0, 0] = 9"), head=WRONG_KERNEL.format(op="erf", wrong="sub(right(x), lowering.mul(lowering.relu(lowering.sub(x, 2.0)), 0.1))"), against="eager"),
    "drift-by-pass": inference("return torch.tanh(x * x)  # @", 1, "divergence-pass", head=WRONG_PASS.format(old="tanh", new="erf"), against="float64"),
}  # fmt: skip


def judged(name: str, case: Case, folder: Path) -> str:
    """What is wrong with the answer; empty: nothing."""
    script = folder / f"{name.replace('-', '_')}.py"
    script.write_text(case.text)
    line = next((number for number, text in enumerate(case.text.split("\n"), 1) if text.endswith("# @")), 0)
    if not line:  # where it is no line of the model's
        wanted = {OPT: "    optimizer.step()", LOSS: "    loss.backward()"}[case.code]
        line = case.text.split("\n").index(wanted) + 1
    command = [sys.executable, "-m", "irscope", "watch", "--json", "--store", str(folder / "runs.db"), str(script)]
    command += ["--against", case.against] if case.against else []
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ)
    if done.returncode:
        return f"exit code {done.returncode}: {done.stderr[-300:]}"
    found = json.loads(done.stdout)["findings"]
    wanted_kind = case.code.partition("-")[0] if case.against else "non-finite"
    named = [each for each in found if each["kind"] == wanted_kind]
    told = [
        (each["file"] == str(script) and each["range"]["start"]["line"], each["code"], each["message"])
        for each in named
    ]
    if len(told) != 1:
        return f"{len(told)} findings: {[each['message'] for each in found]} {done.stderr[-300:]}"
    at_line, code, message = told[0]
    facts = named[0]["facts"]
    wrong = [f"line {at_line}, not {line}"] * (at_line != line)
    wrong += [f"{code}, not {case.code}"] * (code != case.code)
    wrong += [f"not step {case.step}"] * (not message.startswith(f"Step {case.step}: "))
    if facts and facts["replayed_from"] and not facts["is_same_bits"]:
        wrong.append("the steps before did not become the same")
    return f"{'; '.join(wrong)}: {message} {facts}" if wrong else ""


def main() -> int:
    """Judges the cases that are named, or all."""
    names = sys.argv[1:] or list(CASES)
    right = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            wrong = judged(name, CASES[name], Path(folder))
            right += not wrong
            print(f"{'wrong' if wrong else 'right'}  {name}  {wrong}", flush=True)
    print(f"{right} of {len(names)} right")
    return int(right < len(names))


if __name__ == "__main__":
    sys.exit(main())
