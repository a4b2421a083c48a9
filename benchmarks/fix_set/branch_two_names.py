"""Two names are assigned."""

import torch

def target(x):
    lo, hi = x, x
    if x.mean() > 0:
        lo = x - 1
        hi = x + 1
    return lo * hi


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype, requires_grad=True),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
