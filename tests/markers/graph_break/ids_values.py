"""Ids that have to do with values and shapes that only the data knows."""
import math

import numpy as np
import torch


@torch.compile
def dynamic_shape(x):
    return torch.nonzero(x).sum()


@torch.compile
def unique(x):
    return x.unique().sum()


@torch.compile
def masked(x):
    return torch.masked_select(x, x > 1).sum()


@torch.compile
def repeated(x):
    return torch.repeat_interleave(x, x.long()).sum()


@torch.compile
def listed(x):
    return x * x.tolist()[1]


@torch.compile
def equal(x):
    return x + 1 if torch.equal(x, x) else x


@torch.compile
def math_of_tensor(x):
    return x * math.sqrt(x.sum())


@torch.compile
def sorted_values(x):
    low, high = sorted([x.sum(), x.mean()])
    return high - low


@torch.compile
def numpy_value(x):
    return x + np.asarray(x).max().item()


@torch.compile
def sliced(x):
    return x[: x.argmax()]


@torch.compile
def asserted(x):
    assert x.sum() > 0, f"sum is {x.sum()}"
    return x + 1


@torch.compile
def asserted_bare(x):
    assert not x.isnan().any()
    return x + 1


@torch.compile
def one_hot(x):
    return torch.nn.functional.one_hot(x.long())


for f in (dynamic_shape, unique, masked, repeated, listed, equal, math_of_tensor, sorted_values, numpy_value, sliced, asserted, asserted_bare, one_hot):
    f(torch.arange(4.0))
