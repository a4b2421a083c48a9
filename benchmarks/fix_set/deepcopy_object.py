"""An object with a tensor is copied."""

import copy
import torch

class Output:
    def __init__(self, logits):
        self.logits = logits


def target(x):
    first = Output(x * 2)
    second = copy.deepcopy(first)
    return first.logits + second.logits


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
