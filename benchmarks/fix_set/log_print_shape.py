"""A print of a shape."""

import torch

def target(x):
    print(f"in: {x.shape}")
    return x.cos()


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
