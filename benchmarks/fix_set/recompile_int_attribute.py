"""A counter of the module grows."""

import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.steps = 2

    def forward(self, x):
        self.steps += 1
        return self.linear(x) * self.steps


torch.manual_seed(1)
target = Net()


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    for _ in range(4):
        compiled(*make())
