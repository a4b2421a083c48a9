"""A small Llama, trained with AdamW.  Needs transformers."""

import sys
import time

import torch
from transformers import LlamaConfig, LlamaForCausalLM

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 40
torch.manual_seed(0)
model = LlamaForCausalLM(
    LlamaConfig(
        vocab_size=512,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=4,
        num_attention_heads=4,
        max_position_embeddings=128,
        use_cache=False,
    )
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
compiled = torch.compile(model)

times = []
for step in range(steps):
    ids = torch.randint(0, 512, (4, 64))
    start = time.perf_counter()
    loss = compiled(input_ids=ids, labels=ids).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    times.append(time.perf_counter() - start)
print(f"loss {loss.item():.4f}, {1000 * sorted(times)[len(times) // 2]:.3f} ms a step")
