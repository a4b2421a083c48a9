"""A MobileNet that classifies images.  Needs timm."""

import sys
import time

import timm
import torch

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 60
torch.manual_seed(0)
model = timm.create_model("mobilenetv3_small_050", pretrained=False).eval()
model = torch.compile(model)
images = torch.randn(4, 3, 128, 128)

times = []
with torch.no_grad():
    for step in range(steps):
        start = time.perf_counter()
        scores = model(images)
        times.append(time.perf_counter() - start)
print(f"{scores.mean().item():.6f}, {1000 * sorted(times)[len(times) // 2]:.3f} ms a step")
