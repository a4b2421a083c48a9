"""The mean over tokens that count."""

import torch

def target(x, mask):
    return x[mask].mean()


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype, requires_grad=True), (torch.arange(size * 4) % 3 > 0).reshape(size, 4))


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
