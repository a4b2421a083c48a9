"""A formatted value is printed on the way."""

import torch

def target(x):
    y = x.sin()
    print(f"mean {y.mean():.3f} of {{x}}")
    return y.cos()


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
