"""Each sequence of a packed batch is checked and pooled."""

import torch

def target(x, lengths):
    pooled = []
    start = 0
    for n in lengths.tolist():
        if n <= 0:
            raise ValueError("a sequence is empty")
        pooled.append(x[start : start + n].mean(0))
        start += n
    return torch.stack(pooled)


def make(size=8, dtype=torch.float32):
    return (torch.randn(size + 6, 4, dtype=dtype), torch.tensor([1, 2, 3]))


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
