"""A list of numbers is copied in a neck of a detector."""

import copy
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.sizes = [2, 2]
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x):
        sizes = copy.deepcopy(self.sizes)
        sizes.append(1)
        y = copy.deepcopy(x)
        return self.linear(y) * len(sizes)


torch.manual_seed(1)
target = Net()


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
