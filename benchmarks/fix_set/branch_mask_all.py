"""A mask that keeps everything is dropped."""

import torch

def target(x, mask):
    if torch.all(mask == 1):
        return x
    return x * mask


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype), (torch.arange(size * 4).reshape(size, 4) % 3 > 0).to(dtype))


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
