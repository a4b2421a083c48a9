# change: 2.11 2.13 torch._dynamo.variables.builtin.BuiltinVariable.call_eval
"""`eval()` of a text: 2.13 has a rule for it."""

import torch


@torch.compile(backend="eager")
def evaluated(x):
    return x + eval("1")


evaluated(torch.ones(4))
