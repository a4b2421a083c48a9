"""Layers that are dropped in training, by a flag."""

import torch


class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 4)
        self.layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(3))
        self.layerdrop = 0.3

    def forward(self, x):
        x = self.first(x)
        for layer in self.layers:
            to_drop = False
            if self.training:
                probability = torch.rand([])
                if probability < self.layerdrop:  # skip the layer
                    to_drop = True
            if not to_drop:
                x = layer(x).relu()
        return x


torch.manual_seed(0)
target = Encoder()


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype),)


if __name__ == "__main__":
    compiled = torch.compile(target)
    compiled(*make())
