# change: 2.11 2.13 torch._functorch.config.guess_tangent_strides_as_outputs
# change: 2.11 2.13 torch._inductor.codegen.cpp.KernelGroup.codegen_group
"""A backward of a transposed result: 2.13 compiles it for gradients with the strides of the result."""

import torch


@torch.compile
def turned(x):
    return (x.t() * 2).sin()


x = torch.rand(8, 16, requires_grad=True)
(turned(x) * torch.rand(16, 8)).sum().backward()
