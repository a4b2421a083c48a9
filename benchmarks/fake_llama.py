"""A model with the shapes of Llama-3-70B, for a run without its memory.

    /usr/bin/time -v irscope run benchmarks/fake_llama.py --fake --target h100 -- 80          inference
    /usr/bin/time -v irscope run benchmarks/fake_llama.py --fake --target h100 -- 80 train    one training step
    irscope show --stage 0/0/h100/memory-fit

The first argument is the number of layers.  It needs the package transformers.
"""

from __future__ import annotations

import sys
import time

import torch
from transformers import LlamaConfig, LlamaForCausalLM

layers, train = int(sys.argv[1]), "train" in sys.argv
start = time.time()
config = LlamaConfig(
    hidden_size=8192, num_hidden_layers=layers, num_attention_heads=64, num_key_value_heads=8, intermediate_size=28672,
    vocab_size=128256, max_position_embeddings=8192, use_cache=False,
)  # fmt: skip
torch.set_default_dtype(torch.bfloat16)
model = LlamaForCausalLM(config).to("cuda", torch.bfloat16)
ids = torch.randint(0, 128256, (1, 2048), device="cuda")


@torch.compile  # type: ignore[untyped-decorator]
def step(ids: torch.Tensor) -> torch.Tensor:
    """One forward."""
    loss: torch.Tensor = model(ids).logits.float().square().mean()
    return loss


with torch.set_grad_enabled(train):
    loss = step(ids)
    if train:
        loss.backward()
        torch.optim.AdamW(model.parameters()).step()
print(f"{sum(each.numel() for each in model.parameters()) / 1e9:.1f}·10⁹ parameters, {time.time() - start:.0f} s")
