"""A batch of one among larger ones."""

import torch

def target(x):
    return x.sin() * 2


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    for n in (8, 1):
        compiled(*make(n))
