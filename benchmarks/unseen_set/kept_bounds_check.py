# source: https://github.com/pytorch/pytorch/issues/140394
import torch
from torch import nn


class Bounded:
    def __init__(self, low, high):
        self.low, self.high = torch.tensor(low), torch.tensor(high)

    def is_in(self, value):
        return bool((value >= self.low).all() and (value <= self.high).all())

    def project(self, value):
        return value.clamp(self.low, self.high)


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 2)
        self.spec = Bounded(-1.0, 1.0)

    def forward(self, observation):
        action = self.net(observation)
        if not self.spec.is_in(action):
            action = self.spec.project(action)
        return action


torch.manual_seed(0)
actor = torch.compile(Actor())
with torch.no_grad():
    for scale in (0.1, 5.0, 0.2, 9.0):
        print(f"{actor(torch.randn(3, 4) * scale).sum().item():.4f}")
