# source: https://github.com/pytorch/pytorch/issues/165421
import torch
from torch import nn


class Selected(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, x):
        chosen = x.masked_select(x.ge(0.5))
        return (chosen * self.scale).sum()


torch.manual_seed(0)
selected = torch.compile(Selected())
for _ in range(4):
    print(f"{selected(torch.rand(3, 4)).item():.4f}")
