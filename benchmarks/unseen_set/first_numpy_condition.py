# source: https://github.com/pytorch/pytorch/issues/119186
import numpy as np
import torch


@torch.compile
def normalized(scores):
    kept = scores > 0.5
    if np.count_nonzero(kept) == 1:
        return scores / scores.max()
    return scores / scores.sum()


generator = np.random.default_rng(0)
for _ in range(5):
    values = normalized(generator.random(4))
    print(np.round(values, 3))
