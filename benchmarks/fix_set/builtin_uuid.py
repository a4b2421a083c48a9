"""A name of its own for each call."""

import torch
import uuid

names = []


def target(x):
    names.append(uuid.uuid4().hex)
    return x.sin() + 1


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
