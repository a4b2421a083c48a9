"""A cache grows by one token a call."""

import torch

def target(q, k, v):
    return (q @ k.transpose(-1, -2)).softmax(-1) @ v


def make(size=8, dtype=torch.float32):
    return (torch.randn(2, 1, 4, dtype=dtype), torch.randn(2, size, 4, dtype=dtype), torch.randn(2, size, 4, dtype=dtype))


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    for n in (8, 9, 10, 11):
        compiled(*make(n))
