# change: 2.11 2.13 torch._inductor.codegen.cpp.KernelGroup.codegen_group
"""Each C++ kernel of 2.13 has variables for errors of an integer division."""

import torch


@torch.compile
def doubled(x):
    return x * 2


@torch.compile
def raised(x):
    return x + 3


doubled(torch.rand(16))
raised(torch.rand(16))
