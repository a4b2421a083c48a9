"""A compiled training step of a real model: the fix of its break is proven, one that also leaves the optimizer out is not."""

from __future__ import annotations

from pathlib import Path

import pytest
from irscope.driver.driver import RunSpec
from irscope.driver.trials.proving import Prover, Status
from irscope.protocol import Lane
from irscope.worker.client import Worker
from support import write

BREAK = "    if loss > 4:\n        loss = loss * 0.5\n"
FIX = "    loss = torch.where(loss > 4, loss * 0.5, loss)\n"
STEP = f"""\
import torch
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
config = LlamaConfig(
    hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2, vocab_size=32
)
model = LlamaForCausalLM(config)
opt = torch.optim.SGD(model.parameters(), lr=0.1)


@torch.compile
def step(ids, weight):
    loss = model(input_ids=ids, labels=ids).loss * weight.mean()
{BREAK}    loss.backward()
    opt.step()
    opt.zero_grad()
    return loss.detach()


for _ in range(2):
    step(torch.randint(0, 32, (2, 8)), torch.ones(2))
"""
SKIPPED = "    if not torch.compiler.is_compiling():\n        opt.step()\n"


@pytest.mark.nightly
def test_a_step_of_a_llama(tmp_path: Path, shared_worker: Worker | None) -> None:
    pytest.importorskip("transformers")
    script = write(tmp_path, STEP)
    right = STEP.replace(BREAK, FIX)
    with Prover(RunSpec(str(script), (), Lane.FAST), shared_worker) as prover:
        (finding,) = [one for one in prover.begin().findings if one.code == "GB0170"]
        proof, _ = prover.prove({str(script): right}, finding)
        prover._left_out = lambda texts: ""  # type: ignore[method-assign]  # what the runs show by themselves
        wrong, _ = prover.prove({str(script): right.replace("    opt.step()\n", SKIPPED)}, finding)
    assert proof.status is Status.VERIFIED, proof.reason
    assert wrong.status is Status.DISPROVEN, wrong.reason
