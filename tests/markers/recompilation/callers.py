"""One recompilation for each new shape, whatever the way in which the call is written."""
import functools

import torch


@torch.compile(dynamic=False)
def f(x, scale: float = 2.0):
#     ^ recompilation recompile-size ×5
    return x * scale


@torch.compile(dynamic=False)
def long_signature(
    first,
    second,
    #^^^^^ recompilation recompile-size
    *rest,
    flag=False,
):
    return first + second


def helper(n):
    return f(torch.ones(n))


f(torch.ones(2))
f(
    torch.ones(3),
    2.0,
)
helper(4)
[f(torch.ones(n)) for n in (5, 6)]
functools.partial(f, torch.ones(7))()
long_signature(torch.ones(2), torch.ones(2))
long_signature(torch.ones(2), torch.ones(1))
long_signature(torch.ones(2), torch.ones(1), flag=True)
