"""Images of several sizes through a convolution."""

import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3, padding=1)

    def forward(self, x):
        return self.conv(x).relu().mean((2, 3))


torch.manual_seed(1)
target = Net()


def make(size=8, dtype=torch.float32):
    return (torch.randn(1, 3, size, size, dtype=dtype),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    for n in (8, 10, 12):
        compiled(*make(n))
