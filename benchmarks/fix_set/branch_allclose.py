"""A shortcut for an input that is the same."""

import torch

def target(x, y):
    if torch.allclose(x, y):
        return x * 2
    return x + y


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype), torch.randn(size, 4, dtype=dtype))


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
