"""warnings.warn in forward."""

import torch
import warnings

def target(x):
    warnings.warn("this is deprecated")
    return x.exp()


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
