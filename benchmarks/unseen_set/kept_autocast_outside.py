# source: https://github.com/pytorch/pytorch/issues/128134
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.linear = nn.Linear(8, 8)

    @torch.compile
    def forward(self, x, memory):
        return self.linear(self.norm(x)) + memory.to(x.dtype)


torch.manual_seed(0)
block = Block()
memory = torch.randn(2, 8)
with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
    x = torch.randn(2, 8)
    for _ in range(3):
        x = block(x, memory)
        memory = x
        print(x.dtype, tuple(x.shape))
