"""A batch is a dict."""

import torch

def target(batch):
    return batch['x'].sin() * batch['m']


def make(size=8, dtype=torch.float32):
    return ({'x': torch.randn(size, dtype=dtype), 'm': torch.ones(size, dtype=dtype)},)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    for n in (8, 6, 4):
        compiled(*make(n))
