# source: https://github.com/pytorch/pytorch/issues/128319
import torch
from torch import nn


class Counted(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        self.calls += 1
        return self.linear(x).relu()


torch.manual_seed(0)
net = Counted()
compiled = torch.compile(net)
for _ in range(6):
    y = compiled(torch.randn(3, 4))
print(net.calls, f"{y.sum().item():.4f}")
