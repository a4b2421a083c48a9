"""Scores are masked when the mask hides something."""

import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.q = torch.nn.Linear(4, 4)
        self.k = torch.nn.Linear(4, 4)

    def forward(self, x, mask):
        scores = self.q(x) @ self.k(x).transpose(-1, -2)
        if mask.any():
            scores = scores.masked_fill(mask, -1e4)
        return scores.softmax(-1)


torch.manual_seed(1)
target = Net()


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype), torch.arange(size) % 3 == 0)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
