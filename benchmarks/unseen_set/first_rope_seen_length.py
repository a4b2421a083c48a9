# source: https://github.com/facebookresearch/xformers/issues/728
import torch
from torch import nn


class Rotary(nn.Module):
    def __init__(self, dim=4):
        super().__init__()
        self.register_buffer("frequencies", 1.0 / 10 ** (torch.arange(0, dim, 2) / dim))
        self._seen = 0
        self._cos = None

    def forward(self, x):
        length = x.shape[-2]
        if length > self._seen:
            self._seen = length
            angles = torch.outer(torch.arange(length).float(), self.frequencies)
            self._cos = torch.cat([angles, angles], -1).cos()
        return x * self._cos[:length]


torch.manual_seed(0)
rotary = Rotary()
compiled = torch.compile(rotary)
for length in (3, 5, 4, 7, 6):
    print(f"{compiled(torch.randn(2, length, 4)).sum().item():.4f}")
print(rotary._seen)
