"""A conditional expression of a number."""

import torch

def target(x):
    scale = 2.0 if x.norm() > 1 else 0.5
    return x * scale


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
