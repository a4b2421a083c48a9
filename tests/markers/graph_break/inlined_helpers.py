"""A break three calls below the compiled function stands where it is caused, once, however many callers there are."""
import torch


def report(value, note):
    print(note, value.shape)
    #^^^^^^^^^^^^^^^^^^^^^^^ graph-break GB0059 ×5
    return value


def middle(x):
    return report(x.sin(), "middle") + 1


def other(x):
    return report(x.cos(), "other") - 1


@torch.compile
def outer(x):
    y = middle(x)
    return y * 2 + other(y)


outer(torch.ones(4))
