"""torch.where with one argument."""

import torch

def target(x):
    (index,) = torch.where(x[:, 0] > 0)
    return x[index].sum()


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
