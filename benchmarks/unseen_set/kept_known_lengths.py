# source: https://github.com/pytorch/pytorch/issues/143670
import torch


@torch.compile
def mixed(x, filters, length):
    if length in filters:
        return x * filters[length]
    return x + 1


torch.manual_seed(0)
filters = {}
for length in (3, 4, 3, 5, 6):
    print(f"{mixed(torch.ones(length), filters, length).sum().item():.4f}")
    filters.setdefault(length, torch.rand(length))
