"""Two assignments of one name."""

import torch

def target(x):
    y = x.sin()
    if y.mean() > 0:
        y = y * 2
    else:
        y = y / 2
    return y.cos()


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype, requires_grad=True),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
