"""Warnings are silenced."""

import torch
import warnings

def target(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = x.sin()
    return y.cos()


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
