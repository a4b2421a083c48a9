# source: https://github.com/pytorch/pytorch/issues/101154
import sys

import torch
from torch import nn


class Reversible(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(5, 5)
        self.seed = None

    def draw_seed(self):
        self.seed = int(torch.initial_seed() % sys.maxsize) + 1
        torch.manual_seed(self.seed)

    def forward(self, x):
        self.draw_seed()
        return nn.functional.dropout(self.linear(x), 0.5)


torch.manual_seed(0)
layer = Reversible()
compiled = torch.compile(layer)
for _ in range(3):
    print(tuple(compiled(torch.ones(2, 5)).shape), layer.seed)
