"""Two inputs have the same length."""

import torch

def target(x, mask):
    return (x * mask).sum(-1)


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype), torch.ones(size, 4, dtype=dtype))


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    for n in (8, 6, 5):
        compiled(*make(n))
