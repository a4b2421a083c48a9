"""The gradient is computed inside."""

import torch

def target(x):
    loss = (x * x).sum()
    (grad,) = torch.autograd.grad(loss, x)
    return x.detach() - 0.1 * grad


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype, requires_grad=True),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
