# source: https://github.com/pytorch/pytorch/issues/133483
import contextlib

import torch

depth = 0


@contextlib.contextmanager
def deeper():
    global depth
    depth += 1
    try:
        yield depth
    finally:
        depth -= 1


@torch.compile
def nested(x):
    with deeper() as level:
        y = x * level
        if y.sum() > 0:
            y = y - 1
    return y + depth


torch.manual_seed(0)
for _ in range(4):
    print(f"{nested(torch.randn(3)).sum().item():.4f}")
