"""A length from a tensor."""

import torch

def target(x, length):
    n = int(length)
    return x[:n].sum()


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype), torch.tensor(3))


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
