"""The sum of what a mask selects."""

import torch

def target(x):
    return x[x > 0].sum()


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype, requires_grad=True),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
