# source: https://github.com/meta-pytorch/torchtune/pull/2771
import torch


@torch.compile
def routed(tokens, scores, weights):
    choice = scores.argmax(-1)
    order = choice.argsort(stable=True)
    counts = torch.bincount(choice, minlength=weights.shape[0])
    parts = tokens[order].split(counts.tolist())
    mixed = torch.cat([part @ weight for part, weight in zip(parts, weights, strict=True)])
    return torch.empty_like(tokens).index_copy(0, order, mixed)


torch.manual_seed(0)
weights = torch.randn(3, 4, 4)
for _ in range(3):
    print(f"{routed(torch.randn(8, 4), torch.randn(8, 3), weights).sum().item():.4f}")
