# change: 2.11 2.13 torch._dynamo.variables.tensor.TensorVariable.method_requires_grad_
"""`requires_grad_()` of a tensor that is made inside: 2.13 traces it."""

import torch


@torch.compile(backend="eager")
def slope(x):
    y = x.clone().requires_grad_()
    return torch.autograd.grad((y * y).sum(), y)[0]


slope(torch.ones(4))
