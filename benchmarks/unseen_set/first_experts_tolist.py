# source: https://github.com/PrimeIntellect-ai/prime-rl/issues/996
import torch
from torch import nn


class Experts(nn.Module):
    def __init__(self, count=3, width=4):
        super().__init__()
        self.weights = nn.Parameter(torch.randn(count, width, width) / width)

    def forward(self, tokens, per_expert):
        sizes = per_expert.tolist()
        parts = torch.split(tokens, sizes)
        done = [part @ weight for part, weight in zip(parts, self.weights, strict=True)]
        return torch.cat(done)


torch.manual_seed(0)
experts = torch.compile(Experts())
for sizes in ([2, 3, 1], [1, 1, 4], [3, 3, 2]):
    tokens = torch.randn(sum(sizes), 4)
    print(f"{experts(tokens, torch.tensor(sizes)).sum().item():.4f}")
