"""Features of sound: many small operations on large tensors, with a history that grows in Python."""

import sys
import time

import torch

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 60
torch.manual_seed(0)
filters = torch.rand(40, 257)


@torch.compile(dynamic=True)
def features(frames, gain):
    frames = frames * gain
    frames = frames - 0.97 * torch.roll(frames, 1, -1)
    window = 0.54 - 0.46 * torch.cos(torch.linspace(0, 6.2832, frames.shape[-1]))
    power = (frames * window).reshape(frames.shape[0], -1, 257, 2).square().sum(-1)
    mel = torch.log(power @ filters.T + 1e-6)
    return (mel - mel.mean(1, keepdim=True)) / (mel.std(1, keepdim=True) + 1e-5)


times = []
for step in range(steps):
    sound = torch.randn(16, 257 * 2 * 20)
    start = time.perf_counter()
    found = features(sound, 1.0 + 0.01 * step)
    times.append(time.perf_counter() - start)
print(f"{found.std().item():.5f}, {1000 * sorted(times)[len(times) // 2]:.3f} ms a step")
