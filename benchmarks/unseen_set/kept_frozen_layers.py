# source: https://github.com/pytorch/pytorch/issues/139476
import torch
from torch import nn


class Staged(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 1)
        self.iteration = 0

    def forward(self, x):
        x = self.second(torch.relu(self.first(x)))
        self.iteration += 1
        return x.mean()


torch.manual_seed(0)
staged = Staged()
compiled = torch.compile(staged)
for iteration in range(4):
    staged.first.requires_grad_(iteration % 2 == 0)
    compiled(torch.randn(3, 4)).backward()
print(staged.iteration, f"{staged.first.weight.grad.sum().item():.4f}")
