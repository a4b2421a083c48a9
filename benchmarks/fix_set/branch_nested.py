"""A branch in a branch."""

import torch

def target(x):
    if x.sum() > 0:
        if x.max() > 1:
            y = x / x.max()
        else:
            y = x + 1
    else:
        y = -x
    return y


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
