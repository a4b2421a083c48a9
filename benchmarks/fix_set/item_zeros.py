"""A buffer of a size that a tensor holds."""

import torch

def target(x, lengths):
    width = lengths.max().item()
    pad = torch.zeros(x.shape[0], width, dtype=x.dtype)
    return x.sum() + pad.sum()


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype), torch.tensor([1, 2, 3]))


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
