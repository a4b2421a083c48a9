# source: https://github.com/pytorch/pytorch/pull/186500
import logging

import torch

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger("norms")


@torch.compile
def clipped(grad, limit):
    norm = grad.norm()
    log.info(f"{norm=}")
    scale = (limit / (norm + 1e-6)).clamp(max=1.0)
    return grad * scale


torch.manual_seed(0)
for _ in range(3):
    print(f"{clipped(torch.randn(6), 1.0).norm().item():.4f}")
