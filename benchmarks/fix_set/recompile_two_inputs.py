"""Two inputs vary, each at its own time: a fix of the one guard that failed leads to the next."""

import torch

def target(x, y):
    return x.sin().sum() * y.cos()


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype), torch.randn(5, size, dtype=dtype))


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    for rows, columns in ((8, 3), (6, 3), (6, 7)):
        compiled(make(rows)[0], make(columns)[1])
