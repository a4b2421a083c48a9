# change: 2.11 2.13 ?
"""A context that an `ExitStack` enters."""

import contextlib

import torch


@torch.compile(backend="eager")
def entered(x):
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        return x + 1


entered(torch.ones(4))
