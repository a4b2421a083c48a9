"""Anomaly detection in forward."""

import torch

def target(x):
    with torch.autograd.set_detect_anomaly(True):
        y = (x * 2).sum()
    return y


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype, requires_grad=True),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
