# Source: https://github.com/pytorch/pytorch/issues/114293
import torch


@torch.compile
def accumulate(rows, start, end):
    total = rows[start]
    for i in range(start + 1, end):
        total = total + rows[i] * 0.5
    return total


rows = torch.arange(60.0).reshape(12, 5)
for start in range(6):
    print(accumulate(rows, start, 10).sum().item())
