# change: 2.11 2.13 ?
"""`sys.getsizeof()` breaks by another rule."""

import sys

import torch


@torch.compile(backend="eager")
def sized(x):
    return x + sys.getsizeof(1)


sized(torch.ones(4))
