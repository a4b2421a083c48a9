"""A loop of many rounds is a finding; one over layers, a short one, and one that is a small part of its graph are not."""
import torch


@torch.compile
def recurrent(sequence):
    h = torch.zeros(8)
    for step in range(sequence.shape[0]):
    #           ^^^^^^^^^^^^^^^^^^^^^^^^ unrolled-loop unrolled-loop
        h = torch.tanh(sequence[step] + h)
    return h


@torch.compile
def short(h):
    for _ in range(12):
        h = h.sin() * 2 + 1
        h = h.cos() * 2 + 1
    return h


class Layers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(40))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).relu()
        for i in range(len(self.layers)):
            x = self.layers[i](x).relu()
        return x


recurrent(torch.ones(40, 8))
short(torch.ones(3))
torch.compile(Layers())(torch.ones(2, 4))
