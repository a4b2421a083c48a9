"""Two guards fail together: the size of a batch and a scale that follows it."""

import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 0.5

    def forward(self, x):
        return x.sin() * self.scale


target = Net()


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    for n in (8, 6, 5):
        target.scale = 1 / n
        compiled(*make(n))
