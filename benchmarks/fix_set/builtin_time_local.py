"""A timer that is printed."""

import time
import torch

def target(x):
    start = time.time()
    y = x @ x.t()
    print(f"took {time.time() - start:.1f}")
    return y


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
