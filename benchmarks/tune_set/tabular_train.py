"""A residual network on tables, whose training step logs its loss and clips by it."""

import sys
import time

import torch
from torch import nn

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 60


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner = nn.Linear(width, 2 * width)
        self.outer = nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.outer(nn.functional.gelu(self.inner(self.norm(x))))


class Tables(nn.Module):
    def __init__(self, width=64, depth=8):
        super().__init__()
        self.embed = nn.Linear(20, width)
        self.blocks = nn.ModuleList([Block(width) for _ in range(depth)])
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)
            if x.abs().max() > 100:
                x = x.clamp(-100, 100)
        return self.head(x)


torch.manual_seed(0)
model = Tables()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
model = torch.compile(model)

times = []
for step in range(steps):
    x = torch.randn(256, 20)
    start = time.perf_counter()
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    times.append(time.perf_counter() - start)
print(f"loss {loss.item():.4f}, {1000 * sorted(times)[len(times) // 2]:.3f} ms a step")
