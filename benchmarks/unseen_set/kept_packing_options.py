# source: https://github.com/xdit-project/xDiT/pull/781
import torch

options = {"scale": 0.5}


@torch.compile
def attend(q, k, options):
    weights = torch.softmax(q @ k.transpose(-1, -2) * options["scale"], -1)
    if "length" in options:
        weights = weights * (torch.arange(k.shape[-2]) < options["length"])
    return weights @ k


torch.manual_seed(0)
for padding in (0, 2, 0, 1):
    q, k = torch.randn(1, 4, 3), torch.randn(1, 6, 3)
    if padding:
        options.update(length=6 - padding)
    else:
        options.pop("length", None)
    print(f"{attend(q, k, options).sum().item():.4f}")
