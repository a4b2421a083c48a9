"""Ids that have to do with values and shapes that only the data knows."""
import math

import numpy as np
import torch


@torch.compile
def dynamic_shape(x):
    return torch.nonzero(x).sum()
    #      ^^^^^^^^^^^^^^^^ graph-break GB0036


@torch.compile
def unique(x):
    return x.unique().sum()
    #      ^^^^^^^^^^ graph-break GB0036


@torch.compile
def masked(x):
    return torch.masked_select(x, x > 1).sum()
    #      ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ graph-break GB0036


@torch.compile
def repeated(x):
    return torch.repeat_interleave(x, x.long()).sum()
    #      ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ graph-break GB0036


@torch.compile
def listed(x):
    return x * x.tolist()[1]
    #          ^^^^^^^^^^ graph-break GB0109


@torch.compile
def equal(x):
    return x + 1 if torch.equal(x, x) else x
    #               ^^^^^^^^^^^^^^^^^ graph-break GB0033


@torch.compile
def math_of_tensor(x):
    return x * math.sqrt(x.sum())
    #          ^^^^^^^^^^^^^^^^^^ graph-break GB0033


@torch.compile
def sorted_values(x):
    low, high = sorted([x.sum(), x.mean()])
    #           ^^^^^^^^^^^^^^^^^^^^^^^^^^^ graph-break GB0207
    return high - low


@torch.compile
def numpy_value(x):
    return x + np.asarray(x).max().item()
    #          ^^^^^^^^^^^^^^^^^^^^^^^^^^ graph-break GB0033


@torch.compile
def sliced(x):
#   ^^^^^^ skipped-frame skipped-by-break
    return x[: x.argmax()]
    #        ^^^^^^^^^^^^ graph-break GB0124


@torch.compile
def asserted(x):
    assert x.sum() > 0, f"sum is {x.sum()}"
    #      ^^^^^^^^^^^ graph-break GB0170
    return x + 1


@torch.compile
def asserted_bare(x):
    assert not x.isnan().any()
    #      ^^^^^^^^^^^^^^^^^^^ graph-break GB0170
    return x + 1


@torch.compile
def one_hot(x):
    return torch.nn.functional.one_hot(x.long())
    #      ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ graph-break GB0246


for f in (dynamic_shape, unique, masked, repeated, listed, equal, math_of_tensor, sorted_values, numpy_value, sliced, asserted, asserted_bare, one_hot):
    f(torch.arange(4.0))
