# source: https://github.com/pytorch/pytorch/issues/175869
import itertools

import torch


@torch.compile
def crossed(features):
    pairs = itertools.combinations(range(features.shape[1]), 2)
    columns = [features[:, a] * features[:, b] for a, b in pairs]
    return torch.stack(columns, 1).sum(1)


torch.manual_seed(0)
for rows in (2, 2, 3):
    print(f"{crossed(torch.randn(rows, 4)).sum().item():.4f}")
