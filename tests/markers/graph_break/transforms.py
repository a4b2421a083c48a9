"""A break inside of a function that is transformed: the break is the finding, not the call of the transform as well."""
import torch


def printing(v):
#   ^^^^^^^^ skipped-frame skipped-by-break
    print("inside")
    #^^^^^^^^^^^^^^ graph-break GB0059 ×2
    return v * 2


def valued(v):
#   ^^^^^^ skipped-frame skipped-by-break
    return v * v.sum().item()
    #          ^^^^^^^^^^^^^^ graph-break GB0124 ×2


@torch.compile
def mapped(x):
    return torch.vmap(printing)(x) + 1


@torch.compile
def differentiated(x):
    y = x.sin()
    return torch.func.grad(lambda v: valued(v).sum())(y)
    #                      ^^^^^^^^^^^^^^^^^^^^^^^^^ skipped-frame skipped-by-break


@torch.compile
def plain(x):
    return torch.vmap(torch.sin)(x)


mapped(torch.ones(3, 4))
differentiated(torch.ones(3))
plain(torch.ones(3))
