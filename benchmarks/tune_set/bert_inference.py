"""BERT on batches of sentences of several lengths.  Needs transformers."""

import sys
import time

import torch
from transformers import BertConfig, BertModel

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 60
torch.manual_seed(0)
model = BertModel(
    BertConfig(
        vocab_size=1000,
        hidden_size=128,
        num_hidden_layers=4,
        num_attention_heads=4,
        intermediate_size=512,
    )
).eval()
encode = torch.compile(model)
batches = [torch.randint(0, 1000, (8, length)) for length in (32, 48, 64)]

times = []
with torch.inference_mode():
    for step in range(steps):
        start = time.perf_counter()
        pooled = encode(batches[step % 3]).pooler_output
        times.append(time.perf_counter() - start)
print(f"{pooled.mean().item():.5f}, {1000 * sorted(times)[len(times) // 2]:.3f} ms a step")
