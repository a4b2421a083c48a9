"""A learning rate changes."""

import torch

def target(x, lr):
    return x - lr * x.sin()


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype), 0.1)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    for lr in (0.1, 0.05, 0.025):
        compiled(make()[0], lr)
