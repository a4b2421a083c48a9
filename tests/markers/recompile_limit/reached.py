"""The limit of eight compiles, reached by values; what comes after it runs as plain Python and is found no more."""
import torch


@torch.compile
def f(x, name):
#   ^ recompile-limit GB0039
#        ^^^^ recompilation recompile-value ×7
    return x + len(name)


for n in range(12):
    f(torch.ones(4), "a" * n)
