# change: 2.11 2.13 torch._dynamo.config.skip_guards_on_constant_func_defaults
"""A default value that changes between two calls: 2.11 goes on with the old one, and 2.13 compiles again."""

import torch


def scaled(x, factor=2):
    return x * factor


@torch.compile(backend="eager")
def step(x):
    return scaled(x) + 1


x = torch.ones(4)
step(x)
scaled.__defaults__ = (3,)
step(x)
