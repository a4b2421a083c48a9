# source: https://github.com/pytorch/pytorch/issues/131975
import torch


@torch.compile
def merged(a, b):
    return (a + b).clip(0)


torch.manual_seed(0)
weight, update = torch.randn(6), torch.randn(6)
with torch.no_grad():
    for flag in (False, True, False, True):
        weight.requires_grad_(flag)
        print(f"{merged(weight, update).sum().item():.4f}")
