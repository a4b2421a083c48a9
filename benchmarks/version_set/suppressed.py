# change: 2.9 2.11 ?
"""`contextlib.suppress()`: 2.11 traces it."""

import contextlib

import torch


@torch.compile(backend="eager")
def ignored(x):
    with contextlib.suppress(ValueError):
        return x + 1


ignored(torch.ones(4))
