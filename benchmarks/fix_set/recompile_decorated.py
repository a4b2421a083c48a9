"""The function is compiled where it is decorated."""

import torch

def step(x):
    return x.cumsum(0) + 1


@torch.compile
def target(x):
    return step(x) * 2


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype),)


if __name__ == "__main__":
    torch.manual_seed(0)
    for n in (8, 7, 6):
        target(*make(n))
