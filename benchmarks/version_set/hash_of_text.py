# change: 2.11 2.13 torch._dynamo.variables.builtin.BuiltinVariable.call_hash
"""`hash()`: 2.13 has a rule for it."""

import torch


@torch.compile(backend="eager")
def named(x):
    return x + (hash("a") > 0)


named(torch.ones(4))
