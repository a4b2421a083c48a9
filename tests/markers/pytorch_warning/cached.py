"""PyTorch warns of a cache that it traces through, once in each function; the warnings of the script are not reported."""
import functools
import warnings

import torch


@functools.lru_cache
def factor(n):
    return n * 2


@torch.compile
def scale(x):
    return x * factor(3)
    #          ^^^^^^^^^ pytorch-warning dynamo-detected-a-call-to


@torch.compile
def shift(x):
    warnings.warn("mine")
    #^^^^^^^^^^^^^^^^^^^^ graph-break GB0007
    return x + 1


scale(torch.ones(3))
scale(torch.ones(3))
shift(torch.ones(3))
warnings.warn("mine, too")
