"""A flag of the module and a value of the tensor."""

import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.clip = True

    def forward(self, x):
        h = self.linear(x)
        if self.clip and h.abs().max() > 0.5:
            h = h.clamp(-0.5, 0.5)
        return h


torch.manual_seed(1)
target = Net()


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype, requires_grad=True),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
