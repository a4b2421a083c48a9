# change: 2.11 2.13 ?
"""`copy.deepcopy()` of a dictionary without tensors."""

import copy

import torch


@torch.compile(backend="eager")
def copied(x):
    return copy.deepcopy({"a": 1})["a"] + x


copied(torch.ones(4))
