"""A recompilation stands at the parameter whose tensor changed: size, stride, dtype, rank, requires_grad."""
import torch


@torch.compile
def size(x, y):
#        ^ recompilation recompile-size
    return x + y


@torch.compile
def size_of_second(x, y):
#                     ^ recompilation recompile-size
    return x.sum() + y.sum()


@torch.compile
def stride(x, y):
#          ^ recompilation recompile-stride
    return x * 2 + y


@torch.compile
def dtype(x, y):
#            ^ recompilation recompile-dtype
    return x * 2 + y


@torch.compile
def rank(x, y):
#        ^ recompilation recompile-rank
    return x.sum() + y


@torch.compile
def requires_grad(x, y):
#                 ^ recompilation recompile-requires-grad
    return x * 2 + y


@torch.compile
def conj(x, y):
#        ^ recompilation recompile-dispatch
    return x + 1


a = torch.ones(4, 4)
b = torch.ones(4, 4)
size(a, b)
size(torch.ones(6, 6), torch.ones(6, 6))
size_of_second(a, torch.ones(3))
size_of_second(a, torch.ones(5))
stride(a, a)
stride(a.t(), a)
dtype(a, b)
dtype(a, a.double())
rank(a, a)
rank(torch.ones(4), a)
requires_grad(a, a)
requires_grad(a.clone().requires_grad_(), a)
c = torch.ones(2, dtype=torch.complex64)
conj(c, c)
conj(c.conj(), c)
