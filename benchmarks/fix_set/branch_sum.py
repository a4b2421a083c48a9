"""A sign is chosen by the sum."""

import torch

def target(x):
    if x.sum() > 0:
        return x + 1
    return x - 1


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype, requires_grad=True),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
