"""random.choice chooses a layer."""

import random
import torch

def target(x):
    scale = random.choice([2.0, 2.0])
    return x * scale


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
