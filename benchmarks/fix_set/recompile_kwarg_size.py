"""A tensor passed by name varies."""

import torch

def target(x, *, bias):
    return x.sum() + bias.sin()


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    for n in (8, 6, 4):
        compiled(make()[0], bias=torch.randn(n))
