"""A context of the user's own around a timer."""

import contextlib
import time
import torch

@contextlib.contextmanager
def timed(name):
    start = time.perf_counter()
    yield
    times[name] = time.perf_counter() - start


times = {}


def target(x):
    with timed("block"):
        y = x.sin()
    return y.cos()


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
