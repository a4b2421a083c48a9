"""A list of different lengths."""

import torch

def target(xs):
    total = xs[0]
    for x in xs[1:]:
        total = total + x
    return total


def make(size=8, dtype=torch.float32):
    return ([torch.randn(4, dtype=dtype) for _ in range(size)],)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    for n in (2, 3):
        compiled([torch.randn(4) for _ in range(n)])
