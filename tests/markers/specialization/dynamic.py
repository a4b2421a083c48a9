"""A size or a number that was to be dynamic and is fixed by what the code does with it."""
import torch


@torch.compile(dynamic=True)
def compared(x):
    if x.shape[0] == 5:
    #  ^^^^^^^^^^^^^^^ specialization specialize-value
        return x * 2
    return x


@torch.compile(dynamic=True)
def as_constant(x):
    return x + int(str(x.shape[0]))
    #              ^^^^^^^^^^^^^^^ graph-break GB0059


@torch.compile(dynamic=True)
def with_constant_size(x):
    return x + torch.ones(6)
    #      ^^^^^^^^^^^^^^^^^ specialization specialize-value


@torch.compile(dynamic=True)
def multiplied(x, w):
    return x @ w


@torch.compile(dynamic=True)
def number(x, n):
    if n == 3:
    #  ^^^^^^ specialization specialize-value
        return x * 2
    return x * n


@torch.compile(dynamic=True)
def hashed(x, table):
    return x * table[x.shape[0]]
    #          ^^^^^^^^^^^^^^^^^ specialization specialize-value


compared(torch.ones(5))
as_constant(torch.ones(7))
with_constant_size(torch.ones(6))
multiplied(torch.ones(3, 8), torch.ones(8, 2))
number(torch.ones(4), 3)
hashed(torch.ones(9), {9: 2.0})
