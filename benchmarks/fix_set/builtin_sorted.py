"""sorted() of tensors."""

import torch

def target(x):
    order = sorted([x[0].sum(), x[1].sum()])
    return order[0] - order[1]


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
