"""logging.info itself."""

import logging
import torch

def target(x):
    logging.info("step")
    y = x.exp()
    logging.debug("done")
    return y


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
