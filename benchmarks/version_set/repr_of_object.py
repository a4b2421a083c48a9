# change: 2.9 2.11 torch._dynamo.variables.builtin.BuiltinVariable.call_repr
"""`repr()` of an object with a `__repr__`: 2.11 has a rule for it."""

import torch


class Box:
    def __repr__(self):
        return "Box"


box = Box()


@torch.compile(backend="eager")
def named(x):
    return x + len(repr(box))


named(torch.ones(4))
