"""A negated condition."""

import torch

def target(x, valid):
    if not valid.all():
        x = x.masked_fill(~valid, 0)
    return x.sum(-1)


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype), (torch.arange(size * 4) % 5 > 0).reshape(size, 4))


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
