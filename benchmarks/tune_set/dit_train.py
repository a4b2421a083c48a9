"""A diffusion transformer, trained to predict noise.  Needs diffusers."""

import sys
import time

import torch
from diffusers import DiTTransformer2DModel

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 30
torch.manual_seed(0)
model = DiTTransformer2DModel(
    num_attention_heads=4,
    attention_head_dim=32,
    in_channels=4,
    out_channels=4,
    num_layers=6,
    sample_size=16,
    patch_size=2,
    num_embeds_ada_norm=1000,
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
model = torch.compile(model)

times = []
for step in range(steps):
    noise, latents = torch.randn(4, 4, 16, 16), torch.randn(4, 4, 16, 16)
    timestep, labels = torch.randint(0, 1000, (4,)), torch.randint(0, 1000, (4,))
    start = time.perf_counter()
    found = model(latents + noise, timestep=timestep, class_labels=labels).sample
    loss = torch.nn.functional.mse_loss(found, noise)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    times.append(time.perf_counter() - start)
print(f"loss {loss.item():.4f}, {1000 * sorted(times)[len(times) // 2]:.3f} ms a step")
