"""An input is copied and then changed."""

import copy
import torch

def target(x):
    y = copy.deepcopy(x)
    y += 1
    return y * 2


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
