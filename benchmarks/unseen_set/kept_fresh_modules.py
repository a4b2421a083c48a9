# source: https://github.com/pytorch/pytorch/issues/130776
import torch
from torch import nn


class Head(nn.Module):
    def __init__(self, gain):
        super().__init__()
        self.linear = nn.Linear(5, 2)
        self.gain = gain

    def forward(self, x):
        return self.linear(x) * self.gain


@torch.compile
def applied(x, module):
    return module(x).tanh()


torch.manual_seed(0)
heads = [Head(gain) for gain in (1.0, 2.0, 3.0)]
for head in heads:
    print(f"{applied(torch.ones(2, 5), head).sum().item():.4f}")
