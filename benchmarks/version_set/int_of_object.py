# change: 2.11 2.13 torch._dynamo.variables.builtin.BuiltinVariable.call_int
"""`int()` of an object with an `__int__`: 2.13 has a rule for it."""

import torch


class Box:
    def __int__(self):
        return 3


box = Box()


@torch.compile(backend="eager")
def counted(x):
    return x + int(box)


counted(torch.ones(4))
