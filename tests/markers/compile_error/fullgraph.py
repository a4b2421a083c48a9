"""With fullgraph=True each break is an error, at the same expression at which the break would be."""
import torch


def helper(x):
    print("helping", x.shape)
    #^^^^^^^^^^^^^^^^^^^^^^^^ compile-error GB0059
    return x


class Net(torch.nn.Module):
    def forward(self, x):
        return helper(x.sin()) * 2


@torch.compile(fullgraph=True)
def branch(x):
    if x.sum() > 0:
    #  ^^^^^^^^^^^ compile-error GB0170
        return x
    return -x


@torch.compile(fullgraph=True)
def shape(x):
    return x[x.abs() > 0].unbind()
    #      ^^^^^^^^^^^^^^^^^^^^^^^ compile-error data-dependent-guard


@torch.compile(fullgraph=True)
def called(x):
    return torch.add(
        x,
        sorted([x.sum(), x.mean()])[0],
        #^^^^^^^^^^^^^^^^^^^^^^^^^^ compile-error GB0207
    )


@torch.compile(fullgraph=True)
def raising(x):
    if x.shape[0] > 2:
        raise ValueError("too long")
        #^^^^^^^^^^^^^^^^^^^^^^^^^^^ compile-error GB0088
    return x


@torch.compile(fullgraph=True)
def fine(x):
    return x.sum().item() * x


for f in (torch.compile(Net(), fullgraph=True), branch, shape, called, raising, fine):
    try:
        f(torch.ones(4))
    except Exception as error:
        print(type(error).__name__)
