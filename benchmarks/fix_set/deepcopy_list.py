"""A list of tensors is copied."""

import copy
import torch

def target(x):
    parts = [x, x.sin()]
    saved = copy.deepcopy(parts)
    return saved[0] + parts[1]


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
