"""`compile()` on modules of PyTorch's own compiles nothing; on those with code of the user's, or with hooks, it does."""
import torch
from torch import nn


class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return self.linear(x)


class Named(nn.Sequential):
    """A class of the user's without a `forward`."""


def pair():
    return nn.Linear(4, 4), nn.ReLU()


x = torch.ones(2, 4)
plain, named, holding = nn.Sequential(*pair()), Named(*pair()), nn.Sequential(Own())
plain.compile(backend="eager")
#^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ skipped-frame skipped-module
named.compile(backend="eager")
#^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ skipped-frame skipped-module
holding.compile(backend="eager")
own = Own()
own.compile(backend="eager")
hooked = nn.Sequential(*pair())
hooked.register_forward_pre_hook(lambda module, args: None)
#                                ^^^^^^^^^^^^^^^^^^^^^^^^^ skipped-frame skipped-frame
hooked.compile(backend="eager")
for module in (plain, named, holding, own, hooked, torch.compile(nn.Sequential(*pair()), backend="eager")):
    module(x)
