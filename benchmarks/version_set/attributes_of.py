# change: 2.11 2.13 ?
"""`vars()` of an object."""

import torch


class Box:
    def __init__(self, side):
        self.side = side


box = Box(3)


@torch.compile(backend="eager")
def counted(x):
    return x + len(vars(box))


counted(torch.ones(4))
