# change: 2.11 2.13 torch._dynamo.variables.builtin.BuiltinVariable.call___build_class__
"""A class that is defined while tracing: 2.13 has a rule for `__build_class__`, which gives another break."""

import torch


@torch.compile(backend="eager")
def sized(x):
    class Box:
        side = 2

    return x + Box.side


sized(torch.ones(4))
