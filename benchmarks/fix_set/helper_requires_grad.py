"""requires_grad_ in forward."""

import torch

def target(x):
    y = x.detach() * 2
    y.requires_grad_(True)
    return y.sin()


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
