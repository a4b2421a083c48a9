"""With dynamic shapes what recompiles is a range, a relation or 0 and 1, not each size."""
import torch


@torch.compile(dynamic=True)
def small_or_large(x):
#                  ^ recompilation recompile-condition
    if x.shape[0] > 8:
        return x * 2
    return x + 1


@torch.compile(dynamic=True)
def equal_sizes(x, y):
#                  ^ recompilation recompile-condition
    if x.shape[0] == y.shape[0]:
        return x + y
    return x.sum() + y.sum()


@torch.compile
def one_after_many(x):
#                  ^ recompilation recompile-condition
#                  ^ recompilation recompile-size
    return x + x.shape[0]


small_or_large(torch.ones(4))
small_or_large(torch.ones(5))
small_or_large(torch.ones(16))
equal_sizes(torch.ones(4), torch.ones(4))
equal_sizes(torch.ones(4), torch.ones(6))
for n in (4, 5, 6, 1):
    one_after_many(torch.ones(n))
