"""Dynamo ignores profiler scopes: a finding in the user's code, and none in that of an optimizer."""
import torch

weight = torch.ones(3, requires_grad=True)
weight.grad = torch.ones(3)
optimizer = torch.optim.SGD([weight], lr=0.1)


@torch.compile
def step():
    optimizer.step()
    #^^^^^^^^^^^^^^^ graph-break GB0025 ×2
    return weight * 2


@torch.compile
def scoped(x):
    with torch.profiler.profile():
    #    ^^^^^^^^^^^^^^^^^^^^^^^^ pytorch-warning profiler-function-will-be-ignored
        return x + 1


step()
scoped(torch.ones(3))
