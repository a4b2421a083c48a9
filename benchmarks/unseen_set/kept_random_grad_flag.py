# source: https://github.com/pytorch/pytorch/issues/158642
import torch
from torch import nn


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 1)

    def forward(self, x):
        noisy = torch.rand(1).item() > 0.5
        if noisy:
            x = x + 0.1 * torch.randn_like(x)
        return torch.sigmoid(self.linear(x))


torch.manual_seed(0)
model = torch.compile(Perceptron())
for _ in range(5):
    print(f"{model(torch.ones(2, 3)).sum().item():.4f}")
