"""The loss is logged as a number."""

import torch

history = []


def target(x):
    loss = (x * x).mean()
    history.append(loss.item())
    return loss * 2


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype, requires_grad=True),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
