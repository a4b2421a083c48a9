"""A size of a list of tensors varies."""

import torch

def target(xs):
    return xs[0].sum() + xs[1].sin()


def make(size=8, dtype=torch.float32):
    return ([torch.randn(size, dtype=dtype), torch.randn(size, dtype=dtype)],)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    for n in (8, 6, 4):
        compiled(*make(n))
