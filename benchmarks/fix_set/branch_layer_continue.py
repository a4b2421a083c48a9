"""Layers that are dropped in training: the loop goes on with the next one."""

import torch


class Decoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 4)
        self.layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(3))
        self.layerdrop = 0.3

    def forward(self, x):
        x = self.first(x)
        for layer in self.layers:
            if self.training and self.layerdrop > 0.0:
                probability = torch.rand([])
                if probability < self.layerdrop:
                    continue
            x = layer(x)
        return x.sin()


torch.manual_seed(0)
target = Decoder()


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype),)


if __name__ == "__main__":
    compiled = torch.compile(target)
    compiled(*make())
