"""A function that is called in a loop behind another break: the resume function is given up, its callee is not."""
import torch


def chunk(h):
    print("in chunk")
    #^^^^^^^^^^^^^^^^ graph-break GB0059 ×2
    return h + 1


def loop(h):
    torch._dynamo.graph_break()
    #^^^^^^^^^^^^^^^^^^^^^^^^^^ graph-break GB0025
    for _ in range(2):
        h = chunk(h)
    return h


torch.compile(loop, backend="eager")(torch.randn(8))
