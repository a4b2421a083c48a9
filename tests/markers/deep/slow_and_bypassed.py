# lane: deep
# env: IRSCOPE_SLOW_GUARDS_US=0
"""Guards over a threshold that is set to nothing, and a graph that the compile caches cannot keep."""
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


@torch.compile
def f(x):
#   ^ slow-guards slow-guards
    return x.sin() + 1


def made_here(x):
    return x.sin()


@torch.compile
def with_higher_order(x):
#   ^^^^^^^^^^^^^^^^^ slow-guards slow-guards
    return torch.utils.checkpoint.checkpoint(made_here, x, use_reentrant=False) * 2


f(torch.ones(4))
with_higher_order(torch.ones(4, requires_grad=True)).sum().backward()
