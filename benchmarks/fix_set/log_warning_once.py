"""A warning of a logger under a condition."""

import logging
import torch

logger = logging.getLogger(__name__)


def target(x):
    y = x * 2
    if x.shape[-1] != 3:
        logger.warning("the last size is not 3")
    return y.relu()


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
