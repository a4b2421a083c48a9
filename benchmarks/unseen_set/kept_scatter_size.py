# source: https://github.com/rusty1s/pytorch_scatter/issues/457
import torch


def scatter_sum(values, index, size=None):
    if size is None:
        size = int(index.max()) + 1 if index.numel() else 0
    out = values.new_zeros(size, values.shape[1])
    return out.scatter_add(0, index[:, None].expand_as(values), values)


@torch.compile
def pooled(values, index):
    values = torch.tanh(values)
    return scatter_sum(values, index).relu()


torch.manual_seed(0)
for _ in range(3):
    print(tuple(pooled(torch.randn(6, 2), torch.tensor([0, 1, 1, 2, 0, 2])).shape))
