"""A lock around a cache."""

import threading
import torch

lock = threading.Lock()


def target(x):
    with lock:
        y = x * 2
    return y.relu()


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
