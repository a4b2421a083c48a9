"""A number of iterations."""

import torch

def target(x, steps: int):
    for _ in range(steps):
        x = x.sin()
    return x


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype), 2)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    for steps in (1, 2, 3):
        compiled(make()[0], steps)
