"""Layers of the model's own class that are dropped in training."""

import torch


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up = torch.nn.Linear(4, 8)
        self.down = torch.nn.Linear(8, 4)

    def forward(self, x):
        return x + self.down(self.up(x).relu())


class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(Layer() for _ in range(3))
        self.layerdrop = 0.3

    def forward(self, x):
        for layer in self.layers:
            dropped = torch.rand([])
            if not self.training or dropped > self.layerdrop:
                x = layer(x)
        return x.sin()


torch.manual_seed(0)
target = Encoder()


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype),)


if __name__ == "__main__":
    compiled = torch.compile(target)
    compiled(*make())
