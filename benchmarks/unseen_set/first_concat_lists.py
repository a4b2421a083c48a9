# source: https://github.com/pytorch/pytorch/issues/148179
import torch
from torch import nn


class Concat(nn.Module):
    def __init__(self, dim=1):
        super().__init__()
        self.dim = dim

    def forward(self, parts):
        return torch.cat(parts, self.dim) * 0.5


torch.manual_seed(0)
concat = torch.compile(Concat())
for count in (2, 3, 4, 2, 5):
    parts = [torch.randn(1, 2, 4) for _ in range(count)]
    print(tuple(concat(parts).shape))
