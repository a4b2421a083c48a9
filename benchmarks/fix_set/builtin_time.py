"""A timer around a layer."""

import time
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x):
        start = time.perf_counter()
        y = self.linear(x)
        self.seconds = time.perf_counter() - start
        return y


torch.manual_seed(1)
target = Net()


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
