"""Three cases."""

import torch

def target(x):
    m = x.mean()
    if m > 1:
        y = x - 1
    elif m < -1:
        y = x + 1
    else:
        y = x * 2
    return y


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
