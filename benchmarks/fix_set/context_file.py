"""A file is written."""

import os
import torch

def target(x):
    y = x.sin()
    with open(os.devnull, "w") as file:
        file.write("seen")
    return y + 1


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
