# source: https://github.com/pytorch/pytorch/issues/95425
import random

import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, layers=3, drop=0.4):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(layers))
        self.drop = drop

    def forward(self, x):
        for layer in self.layers:
            chance = random.uniform(0, 1)
            if self.training and chance < self.drop:
                continue
            x = x + torch.tanh(layer(x))
        return x


random.seed(0)
torch.manual_seed(0)
encoder = torch.compile(Encoder())
for _ in range(4):
    print(f"{encoder(torch.randn(2, 8)).sum().item():.4f}")
