# source: https://github.com/pytorch/pytorch/issues/149405
import torch


@torch.compile
def scaled(x, factor):
    return x * factor


torch.manual_seed(0)
for factor in (1.5, 2.5, 3.5, 0.25):
    print(f"{scaled(torch.randn(3, 3), factor).sum().item():.4f}")
