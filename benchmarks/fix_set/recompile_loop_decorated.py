"""A loop over a size, in a decorated function that is called with keywords; the last batch is smaller."""

import torch

# What is compiled.
@torch.compile
def target(x, weight=None):
    rows = []
    for row in x:  # one after another
        rows.append(row.relu() @ weight)
    return torch.stack(rows)


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype), torch.ones(4, 4, dtype=dtype))


if __name__ == "__main__":
    torch.manual_seed(0)
    for n in (12, 12, 9):
        target(*make(n))
