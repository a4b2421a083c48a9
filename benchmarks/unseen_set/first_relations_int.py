# source: https://github.com/pyg-team/pytorch_geometric/issues/8467
import torch
from torch import nn


class Relations(nn.Module):
    def __init__(self, count=3, dim=4):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(count, dim, dim))

    def forward(self, x, edges, kinds):
        out = torch.zeros_like(x)
        for kind in range(int(kinds.max()) + 1):
            chosen = edges[:, kinds == kind]
            out = out.index_add(0, chosen[1], x[chosen[0]] @ self.weight[kind])
        return out


torch.manual_seed(0)
layer = torch.compile(Relations())
for _ in range(3):
    edges, kinds = torch.randint(0, 5, (2, 9)), torch.randint(0, 3, (9,))
    print(f"{layer(torch.randn(5, 4), edges, kinds).sum().item():.4f}")
