"""Code that is wrong for the shapes and dtypes it gets: the error stands at the operation, in the helper that has it."""
import torch


def multiply(a, b):
    return a @ b
    #      ^^^^^ compile-error GB4315


@torch.compile
def matmul(x):
    y = x.sin()
    return multiply(y, torch.ones(5, 2))


@torch.compile
def concatenated(x):
    return torch.cat([
    #      ^^^^^^^^^^^ to +3:6 compile-error GB4315
        x,
        torch.ones(2, 2),
    ])


@torch.compile
def reshaped(x):
    return (x + 1).view(7).cos()
    #      ^^^^^^^^^^^^^^^ compile-error GB4315


@torch.compile(fullgraph=True)
def strict(x):
    return torch.stack([x, x[0]])
    #      ^^^^^^^^^^^^^^^^^^^^^^ compile-error GB4315


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(3, 3)

    def forward(self, x):
        x = x * 2
        return self.fc(x)
        #      ^^^^^^^^^^ compile-error GB4315


for f in (matmul, concatenated, reshaped, strict, torch.compile(Net())):
    try:
        f(torch.ones(4))
    except Exception as error:
        print(type(error).__name__, str(error)[:60])
