"""A break that was left over."""

import torch

def target(x):
    y = x.sin()
    torch._dynamo.graph_break()
    return y.cos()


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
