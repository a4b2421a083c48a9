# source: https://github.com/MrParosk/soft_nms/pull/14
import torch


@torch.compile
def decayed(scores, classes):
    out = scores.clone()
    for label in torch.unique(classes):
        chosen = classes == label
        best = scores[chosen].max()
        out = torch.where(chosen, out * torch.exp(out - best), out)
    return out


torch.manual_seed(0)
for _ in range(3):
    print(f"{decayed(torch.rand(7), torch.randint(0, 3, (7,))).sum().item():.4f}")
