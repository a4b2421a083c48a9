"""A branch on item()."""

import torch

def target(x):
    if x.sum().item() > 0:
        x = x * 2
    return x.sin()


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
