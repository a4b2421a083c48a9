"""A method that runs the module is not compiled, also beside compiled calls; a method that only counts is not reported."""
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(4, 4)
        self.steps = 0

    def forward(self, x):
        return self.body(x).relu()

    def note(self, steps):
        self.steps += steps

    def sample(self, x):
        return self.twice(x)

    def twice(self, x):
        return self(self(x))


class Other(Net):
    def sample(self, x):
        return self(x)


class Inner(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.compile(torch.nn.Linear(4, 4))

    def forward(self, x):
        return x

    def loss(self, x):
        return self.inner(x)


x = torch.ones(2, 4)
model = torch.compile(Net())
model(x)
model.note(1)
model.sample(x)
#^^^^^^^^^^^ bypassed method
model.sample(x)
torch.compile(Inner()).loss(x)
other = torch.compile(Other())
other.sample = torch.compile(other.sample)
other.sample(x)
