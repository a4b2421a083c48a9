"""GPT-2 that continues a text by the likeliest token, in a window of fixed length.  Needs transformers."""

import sys
import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 60
torch.manual_seed(0)
model = GPT2LMHeadModel(
    GPT2Config(vocab_size=512, n_embd=128, n_layer=4, n_head=4, n_positions=64, use_cache=False)
).eval()
model = torch.compile(model, dynamic=True)

window = torch.randint(0, 512, (1, 32))
times = []
with torch.no_grad():
    for step in range(steps):
        start = time.perf_counter()
        logits = model(input_ids=window).logits[:, -1]
        window = torch.cat([window[:, 1:], logits.argmax(-1, keepdim=True)], dim=1)
        times.append(time.perf_counter() - start)
print(f"{window[0, -5:].tolist()}, {1000 * sorted(times)[len(times) // 2]:.3f} ms a step")
