# source: https://github.com/pytorch/pytorch/issues/134241
import torch


@torch.compile
def moved(source, mask):
    out = torch.zeros_like(source)
    out[mask] = source[mask]
    return out * 2


torch.manual_seed(0)
for _ in range(3):
    source = torch.randn(4, 4, requires_grad=True)
    result = moved(source, torch.rand(4, 4) > 0.5)
    result.sum().backward()
    print(f"{result.sum().item():.4f} {source.grad.sum().item():.1f}")
