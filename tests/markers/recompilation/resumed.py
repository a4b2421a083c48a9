"""Recompilations of what goes on behind a graph break: locals, values on the stack, arguments used later."""
import torch


@torch.compile
def used_later(x, n):
    y = x.sin()
    print("break")
    #^^^^^^^^^^^^^ graph-break GB0059
    return y.repeat(n)
    #               ^ recompilation recompile-value


@torch.compile
def value_on_stack(x):
    return x * x.max().item()
    #          ^^^^^^^^^^^^^^ graph-break GB0124
    #          ^^^^^^^^^^^^^^ recompilation recompile-value


@torch.compile
def local_value(x):
    n = x.max().item()
    #   ^^^^^^^^^^^^^^ graph-break GB0124
    #   ^^^^^^^^^^^^^^ recompilation recompile-value
    y = x + 1
    return y * n


@torch.compile
def size_behind(x):
    y = x[x > 0]
    #   ^^^^^^^^ graph-break GB0036
    #   ^^^^^^^^ recompilation recompile-size
    return y + 1


x = torch.ones(4)
used_later(x, 2)
used_later(x, 3)
value_on_stack(x)
value_on_stack(x * 2)
local_value(x)
local_value(x * 2)
size_behind(x)
size_behind(x - torch.tensor([1.0, 0, 0, 0]))
