"""An assertion whose text has a value of the tensor."""

import torch

def target(x):
    assert x.abs().max() < 100, f"too large: {x.abs().max()}"
    return x * 2


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
