# change: 2.13 2.13 none
"""Recompilations for sizes, values, types and a closure: two environments with the same version must show no difference."""

import torch

made = {"factor": 1.0}


@torch.compile
def scaled(x, by, flags):
    if flags["double"]:
        by = by * 2
    return (x * by).softmax(-1) * made["factor"]


for size in (4, 5, 9):
    scaled(torch.rand(size, 8), 2, {"double": False})
scaled(torch.rand(4, 8), 3.5, {"double": True})
scaled(torch.rand(4, 8).double(), 3, {"double": False})
made["factor"] = 2.0
scaled(torch.rand(4, 8), 2, {"double": False})
