# change: 2.11 2.13 torch._dynamo.variables.builtin.BuiltinVariable.call_locals
"""`locals()`: 2.13 has a rule for it."""

import torch


@torch.compile(backend="eager")
def counted(x):
    return x + len(locals())


counted(torch.ones(4))
