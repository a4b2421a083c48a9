# change: 2.13 2.13 none
"""Steps of training with dropout and an optimizer: two environments with the same version must show no difference."""

import torch
from torch import nn

model = nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32), nn.GELU(), nn.Dropout(0.2), nn.Linear(32, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
compiled = torch.compile(model)

for _ in range(3):
    loss = nn.functional.cross_entropy(compiled(torch.randn(8, 16)), torch.randint(0, 4, (8,)))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
