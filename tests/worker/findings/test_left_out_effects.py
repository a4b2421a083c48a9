"""No fix leaves out a call with effects: neither is it proposed, nor is it verified if somebody proposes it."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from irscope.driver.driver import RunSpec
from irscope.driver.fixing.trying import Trying
from irscope.driver.trials.proving import Prover, Status
from irscope.fixing.proposals import proposals
from irscope.fixing.texts import applied
from irscope.protocol import Finding
from support import shared_worker, write

EFFECTS = {
    "optimizer": "optimizer.step()",
    "schedule": "schedule.step()",
    "buffer": "keeper.keep(y.sum().item())",
    "counter": "keeper.count()",
    "metric": "metric.update(y.sum().item())",
    "ema": "ema.update(net)",
    "callback": "callback(y)",
    "queue": "jobs.put(y.detach())",
    "file": "handle.write('seen')",
    "post": "client.post('url', y)",
    "argument": "print(next(numbers))",
}
HEAD = """\
import itertools, queue, tempfile
import torch

net = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
jobs, handle, numbers = queue.Queue(), tempfile.TemporaryFile("w"), map(abs, itertools.count())

class Keeper:
    calls = 0
    buffer = []

    @torch.compiler.disable
    def keep(self, value):
        self.buffer.append(value)

    @torch.compiler.disable
    def count(self):
        self.calls += 1

    update = post = keep_all = torch.compiler.disable(lambda self, *values: Keeper.buffer.append(values))

keeper = metric = ema = client = Keeper()
callback = torch.compiler.disable(lambda y: Keeper.buffer.append(1))

def train():
    optimizer.zero_grad()
    net(torch.ones(2, 4)).sum().backward()
"""
FUNCTION = """
@torch.compile
def f_NAME(x):
    y = x.sin()
    EFFECT
    return y + 1
"""
OUTPUT = """\
import logging, warnings
import torch
from tqdm import tqdm

logger = logging.getLogger("left out")
bar = tqdm(range(4), disable=True)
"""
OUTPUTS = {
    "print": "print('', end='')",
    "logger": "logger.info('%s', y.shape)",
    "warnings": "warnings.warn('odd')",
    "bar": "bar.set_postfix(size=x.shape[0])",
}


def script_of(head: str, statements: dict[str, str], before: str = "") -> str:
    functions = "".join(FUNCTION.replace("NAME", name).replace("EFFECT", text) for name, text in statements.items())
    calls = "".join(f"    {before}\n    f_{name}(torch.ones(3))\n" for name in statements)
    return f"{head}{functions}\nfor turn in range(2):\n{calls}"


def begun(folder: Path, text: str) -> Prover:
    script = write(folder, text)
    prover = Prover(RunSpec(str(script), cwd=str(folder)), shared_worker())
    prover.begin()
    return prover


@pytest.fixture(scope="module")
def with_effects(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prover]:
    with begun(tmp_path_factory.mktemp("effects"), script_of(HEAD, EFFECTS, "train()")) as prover:
        yield prover


def guarded(text: str, statement: str) -> str:
    return text.replace(f"    {statement}\n", f"    if not torch.compiler.is_compiling():\n        {statement}\n")


def breaks_at(prover: Prover, text: str, statement: str) -> list[Finding]:
    assert prover.original is not None
    line = text[: text.index(f"    {statement}\n")].count("\n") + 1
    found = [one for one in prover.original.findings if one.range.start.line == line and one.kind == "graph-break"]
    assert found, "the call does not break the graph"
    return found


@pytest.mark.parametrize("effect", EFFECTS)
def test_an_effect_is_never_left_out(with_effects: Prover, effect: str) -> None:
    prover, statement = with_effects, EFFECTS[effect]
    assert prover.original is not None
    file = prover.original.findings[0].file
    text = prover.text_of(file)
    for finding in breaks_at(prover, text, statement):
        assert not any("is_compiling" in hint for hint in finding.hints), finding.hints
        for fix in (*finding.fixes, *proposals(finding, text)):
            assert "is_compiling" not in applied(text, fix.edits), fix.title
        for changed in (guarded(text, statement), text.replace(f"    {statement}\n", "    pass\n")):
            proof, _ = prover.prove({file: changed}, finding)
            what = re.fullmatch(r"This leaves out `(.*)`( while compiling)?\.", proof.reason)
            assert proof.status is Status.UNPROVEN and what is not None and what[1] in statement, proof


@pytest.mark.nightly  # a trial for each kind of output; test_fixing leaves a print out
def test_output_is_left_out_as_before(tmp_path: Path) -> None:
    with begun(tmp_path, script_of(OUTPUT, OUTPUTS)) as prover:
        assert prover.original is not None
        file = prover.original.findings[0].file
        text = prover.text_of(file)
        for statement in OUTPUTS.values():
            finding = breaks_at(prover, text, statement)[0]
            titles = [fix.title for fix in proposals(finding, text)]
            assert "Leave it out while compiling" in titles, titles
            proof, _ = prover.prove({file: guarded(text, statement)}, finding)
            assert proof.status is Status.VERIFIED, (statement, proof)


SILENT = textwrap.dedent(
    """\
    import torch

    torch.manual_seed(0)
    net = torch.nn.Linear(5, 1, bias=False)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(opt, step_size=2)
    points, targets = torch.randn(32, 5), torch.randn(32, 1)

    @torch.compile
    def apply_step(scale):
        factor = scale.clamp(max=1.0) * 2
        opt.step()
        return factor

    for turn in range(4):
        opt.zero_grad()
        loss = (net(points) - targets).square().mean()
        loss.backward()
        apply_step(torch.tensor(0.5))
        schedule.step()
    """
)


def test_training_goes_on(tmp_path: Path) -> None:
    """Nothing that the script prints depends on its training, and no program gives the weights."""
    with begun(tmp_path, SILENT) as prover:
        finding = breaks_at(prover, SILENT, "opt.step()")[0]
        tried = Trying(prover, 300).finding(finding)
        assert tried.left_to_python is None, tried.candidates
        if tried.verified is not None:  # the step may be taken by the plain function around what is compiled
            assert tried.verified.fix.title.startswith("Do it after the compiled code"), tried.candidates
            assert "Not compiled any more" in tried.verified.fix.caveat
        before = SILENT.replace(
            "    factor = scale.clamp(max=1.0) * 2\n    opt.step()\n",
            "    opt.step()\n    factor = scale.clamp(max=1.0) * 2\n",
        )
        for text in (guarded(SILENT, "opt.step()"), before):
            assert prover.prove({finding.file: text}, finding)[0].status is Status.UNPROVEN
