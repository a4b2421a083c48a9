"""An input that is not valid is refused."""

import torch

def target(x):
    if (x < -100).any():
        raise ValueError("values are out of range")
    return x.exp()


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
