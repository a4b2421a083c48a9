# source: https://github.com/pytorch/pytorch/issues/114293
import torch


@torch.compile
def accumulated(values, start, end):
    result = values[start]
    for index in range(start + 1, end):
        result = result * 0.5 + values[index]
    return result


torch.manual_seed(0)
values = torch.randn(10, 3)
for start in range(5):
    print(f"{accumulated(values, start, start + 3).sum().item():.4f}")
