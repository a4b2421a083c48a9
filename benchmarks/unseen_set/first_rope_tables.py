# source: https://github.com/foundation-model-stack/foundation-model-stack/pull/64
import torch
from torch import nn


class Rotary(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.frequencies = 1.0 / 100 ** (torch.arange(0, dim, 2) / dim)
        self.tables = {}

    def table(self, length):
        if length not in self.tables:
            angles = torch.outer(torch.arange(length).float(), self.frequencies)
            self.tables[length] = torch.cat([angles, angles], -1)
        return self.tables[length]

    def forward(self, x):
        angles = self.table(x.shape[1])
        return x * angles.cos() + x.flip(-1) * angles.sin()


torch.manual_seed(0)
rotary = Rotary()
compiled = torch.compile(rotary)
for length in (4, 6, 4, 9, 12):
    print(f"{compiled(torch.randn(2, length, 8)).sum().item():.4f}")
print(sorted(rotary.tables))
