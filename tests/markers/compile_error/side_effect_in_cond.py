"""The body of an operator such as torch.cond must be captured as a whole, so a break in it is an error."""
import torch

seen = []


def positive(x):
    seen.append(1)
    #^^^^^^^^^^^^^ compile-error GB0067
    return x.sin()


def other(x):
    return x.cos()


@torch.compile
def f(x):
    return torch.cond(x.sum() > 0, positive, other, (x,))


try:
    f(torch.ones(3))
except Exception:
    pass
