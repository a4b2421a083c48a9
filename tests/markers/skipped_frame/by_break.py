"""Functions that a graph break makes run as plain Python: one hint each, besides the break."""
import torch
from by_break_lib import Noisy, wild


class Router(torch.nn.Module):
    def forward(self, x):
    #   ^^^^^^^ skipped-frame skipped-by-break
        for _ in range(2):
            print("here")
            #^^^^^^^^^^^^ graph-break GB0059 ×2
            x = x + 1
        return x


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.router = Router()

    def forward(self, x):
    #   ^^^^^^^ skipped-frame skipped-by-break
        for _ in range(2):
            x = self.router(x) * 2
        return x


@torch.compile
def in_another_file(x):
#   ^^^^^^^^^^^^^^^ skipped-frame skipped-by-break
    for _ in range(2):
        x = wild(x)
    return x


@torch.compile
def at_times(x, wanted):
#               ^^^^^^ recompilation recompile-value
    """It has a graph for calls of the first sort, so nobody may say that it is not compiled."""
    y = x.sin()
    for _ in range(2):
        if wanted:
            print("wanted")
            #^^^^^^^^^^^^^^ graph-break GB0059
        y = y + 1
    return y


@torch.compile
def cut(x):
    """Cut, but compiled."""
    x = x + 1
    print("cut")
    #^^^^^^^^^^^ graph-break GB0059
    return x * 2


torch.compile(Model())(torch.ones(3))
torch.compile(Noisy())(torch.ones(3))
in_another_file(torch.ones(3))
at_times(torch.ones(3), False)
at_times(torch.ones(3), True)
cut(torch.ones(3))
