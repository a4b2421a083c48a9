"""The number of different labels."""

import torch

def target(labels, x):
    classes = torch.unique(labels)
    return x.sum() * classes.numel()


def make(size=8, dtype=torch.float32):
    return (torch.arange(size) % 3, torch.randn(size, dtype=dtype))


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
