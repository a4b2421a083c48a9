"""Dynamo warns that it ignores the profiler's scope in an optimizer's step: that is PyTorch's own code, and no finding."""
import torch

weight = torch.ones(3, requires_grad=True)
weight.grad = torch.ones(3)
optimizer = torch.optim.SGD([weight], lr=0.1)


@torch.compile
def step():
    optimizer.step()
    #^^^^^^^^^^^^^^^ graph-break GB0025 ×2
    return weight * 2


step()
