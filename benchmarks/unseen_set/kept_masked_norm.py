# source: https://github.com/pytorch/pytorch/issues/194166
import torch
from torch import nn


class MaskedNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(4)

    def forward(self, x, mask):
        out = x.clone()
        out[mask] = self.norm(x[mask])
        return out


torch.manual_seed(0)
layer = torch.compile(MaskedNorm())
for _ in range(3):
    print(f"{layer(torch.randn(6, 4), torch.rand(6) > 0.4).abs().sum().item():.4f}")
