"""A recurrent cell is unrolled over the steps of a sequence."""

import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = torch.nn.GRUCell(4, 4)

    def forward(self, x):
        state = x.new_zeros(x.shape[0], 4)
        states = []
        for step in x.unbind(1):
            state = self.cell(step, state)
            states.append(state)
        return torch.stack(states, 1)


torch.manual_seed(1)
net = Net()
target = torch.compile(net)


def make(size=8, dtype=torch.float32):
    return (torch.randn(2, size, 4, dtype=dtype),)


if __name__ == "__main__":
    torch.manual_seed(0)
    for n in (8, 6, 5):
        target(*make(n))
