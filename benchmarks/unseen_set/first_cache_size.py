# source: https://github.com/meta-pytorch/torchtune/pull/1663
import torch
from torch import nn


class Cache(nn.Module):
    def __init__(self, length=12, dim=4):
        super().__init__()
        self.register_buffer("keys", torch.zeros(1, length, dim))
        self.size = 0

    def update(self, keys):
        count = keys.shape[1]
        self.keys[:, self.size : self.size + count] = keys
        self.size += count
        return self.keys


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.cache = Cache()
        self.project = nn.Linear(4, 4)

    def forward(self, x):
        keys = self.cache.update(self.project(x))
        return torch.softmax(x @ keys.transpose(1, 2), -1) @ keys


torch.manual_seed(0)
attention = Attention()
compiled = torch.compile(attention)
with torch.no_grad():
    for length in (4, 1, 1, 1, 1):
        print(f"{compiled(torch.randn(1, length, 4)).sum().item():.4f}")
print(attention.cache.size)
