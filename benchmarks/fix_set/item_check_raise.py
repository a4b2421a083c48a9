"""A length from a tensor is checked before it is used."""

import torch

def target(x, lengths):
    longest = lengths.max().item()
    if longest > x.shape[0] or longest < 1:
        raise ValueError(f"the length {longest} does not fit")
    return x[:longest].sum(0)


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype), torch.tensor([1, 2]))


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
