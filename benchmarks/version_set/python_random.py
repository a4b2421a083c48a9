# change: 2.13 2.15 torch._dynamo.variables.builder.VariableBuilder._wrap
"""`random.random()`, a function that is bound to the generator of the module: 2.15 traces it."""

import random

import torch


@torch.compile(backend="eager")
def noisy(x):
    return x + random.random()


noisy(torch.ones(4))
