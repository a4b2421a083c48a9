"""Prints, .item() and branches outside of anything compiled are nobody's business."""
import torch


@torch.compiler.disable
def log(x):
    print("mean", x.mean().item())


@torch.compile
def f(x):
    return x * 2


def train():
    for step in range(3):
        y = f(torch.ones(4))
        if y.sum() > 0:
            log(y)
        y.tolist()


train()
