"""An expert runs only if a token was sent to it."""

import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = torch.nn.Linear(4, 2)
        self.expert = torch.nn.Linear(4, 4)

    def forward(self, x):
        weight = self.gate(x).softmax(-1)[:, :1]
        chosen = weight > 0.5
        out = x
        if chosen.any():
            out = out + torch.where(chosen, self.expert(x), torch.zeros_like(x))
        return out


torch.manual_seed(1)
target = Net()


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype, requires_grad=True),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
