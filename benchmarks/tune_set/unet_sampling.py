"""An unconditional diffusion model that samples with DDIM.  Needs diffusers."""

import sys
import time

import torch
from diffusers import DDIMScheduler, UNet2DModel

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 40
torch.manual_seed(0)
unet = UNet2DModel(
    sample_size=32,
    in_channels=3,
    out_channels=3,
    layers_per_block=1,
    block_out_channels=(32, 64),
    down_block_types=("DownBlock2D", "AttnDownBlock2D"),
    up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    norm_num_groups=8,
).eval()
scheduler = DDIMScheduler(num_train_timesteps=1000)
scheduler.set_timesteps(steps)
unet = torch.compile(unet)

sample = torch.randn(2, 3, 32, 32)
times = []
with torch.no_grad():
    for timestep in scheduler.timesteps:
        start = time.perf_counter()
        noise = unet(sample, timestep).sample
        sample = scheduler.step(noise, timestep, sample).prev_sample
        times.append(time.perf_counter() - start)
print(f"{sample.std().item():.4f}, {1000 * sorted(times)[len(times) // 2]:.3f} ms a step")
