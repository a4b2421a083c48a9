"""A break in the innermost of nested modules, below Sequential and ModuleList."""
import torch
from torch import nn


class Gate(nn.Module):
    def forward(self, x):
        if x.mean() > 0:
        #  ^^^^^^^^^^^^ graph-break GB0170 ×3
            return x
        return -x


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), Gate())

    def forward(self, x):
        return x + self.layers(x)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(2))

    def forward(self, x):
    #   ^^^^^^^ skipped-frame skipped-by-break
        for block in self.blocks:
            x = block(x)
        return x


model = torch.compile(Model())
with torch.no_grad():
    model(torch.ones(2, 4))
