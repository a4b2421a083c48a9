"""Several breaks one after the other in one function: each in the function that resumes behind the one before."""
import torch


@torch.compile
def f(x):
    y = x.sin()
    print("first")
    #^^^^^^^^^^^^^ graph-break GB0059
    y = y + 1
    n = y.sum().item()
    #   ^^^^^^^^^^^^^^ graph-break GB0124
    y = y * n
    if y.sum() > 100:
    #  ^^^^^^^^^^^^^ graph-break GB0170
        y = y - 1
    else:
        y = y + 1
    torch._dynamo.graph_break()
    #^^^^^^^^^^^^^^^^^^^^^^^^^^ graph-break GB0025
    return y.cos()


f(torch.ones(4))
f(torch.ones(4))
