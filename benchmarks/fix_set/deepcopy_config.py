"""A configuration with a tensor is copied."""

import copy
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.config = {'scale': torch.tensor(2.0), 'names': ['a', 'b']}

    def forward(self, x):
        config = copy.deepcopy(self.config)
        return self.linear(x) * config["scale"]


torch.manual_seed(1)
target = Net()


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
