"""0 and 1 are always constants, also where sizes are dynamic."""
import torch


@torch.compile(dynamic=True)
def f(x):
#     ^ recompilation recompile-condition
#     ^ recompilation recompile-size
    return x * 2


@torch.compile(dynamic=True)
def squeezed(x):
#            ^ recompilation recompile-condition
    if x.shape[0] == 1:
        return x[0]
    return x.sum(0)


@torch.compile(dynamic=True)
def counted(x, n):
#              ^ recompilation recompile-value
    for _ in range(n):
    #        ^^^^^^^^ specialization specialize-value
    #        ^^^^^^^^ specialization specialize-zero-one
        x = x + 1
    return x


for n in (4, 1, 0):
    f(torch.ones(n))
squeezed(torch.ones(3, 3))
squeezed(torch.ones(1, 3))
counted(torch.ones(3), 2)
counted(torch.ones(3), 1)
