"""Height and width vary."""

import torch

def target(x):
    return torch.nn.functional.avg_pool2d(x, 2)


def make(size=8, dtype=torch.float32):
    return (torch.randn(1, 3, size, size + 2, dtype=dtype),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    for n in (8, 16, 12):
        compiled(*make(n))
