"""Functions under torch.compile in which there is nothing to compile."""
import torch


@torch.compile
def identity(x):
#   ^^^^^^^^ skipped-frame skipped-frame
    return x


@torch.compile
def only_python(n):
#   ^^^^^^^^^^^ skipped-frame skipped-frame
    return [i * 2 for i in range(n)]


@torch.compile
def shape_of(x):
#   ^^^^^^^^ skipped-frame skipped-frame
    return x.shape[0] + 1


class Config:
    @torch.compile
    def name(self):
    #   ^^^^ skipped-frame skipped-frame
        return "name"


@torch.compile
def work(x):
    return x + 1


identity(torch.ones(3))
only_python(3)
shape_of(torch.ones(4))
Config().name()
work(torch.ones(3))
