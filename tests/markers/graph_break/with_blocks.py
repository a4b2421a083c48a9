"""Breaks inside `with` blocks, in a context manager's own methods, and because of a context manager."""
import contextlib

import torch


class Timer:
    def __enter__(self):
        print("on")
        #^^^^^^^^^^ graph-break GB0059
        return self

    def __exit__(self, *_):
        return False


@contextlib.contextmanager
def noted(x):
    torch._dynamo.graph_break()
    #^^^^^^^^^^^^^^^^^^^^^^^^^^ graph-break GB0025
    yield x + 1


@torch.compile
def under_no_grad(x):
    with torch.no_grad():
        y = x.sin()
        print("inside")
        #^^^^^^^^^^^^^^ graph-break GB0059
        y = y + 1
    return y * 2


@torch.compile
def in_enter(x):
#   ^^^^^^^^ skipped-frame skipped-by-break
    with Timer():
        x = x + 1
    return x * 2


@torch.compile
def in_generator_based(x):
#   ^^^^^^^^^^^^^^^^^^ skipped-frame skipped-by-break
    with noted(x) as y:
        z = y * 2
    return z


@torch.compile
def two_managers(x):
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ x
        n = y.sum().item()
        #   ^^^^^^^^^^^^^^ graph-break GB0124
    return y * n


@torch.compile
def suppressed(x):
#   ^^^^^^^^^^ skipped-frame skipped-by-break
    with contextlib.suppress(ValueError):
        x = x + 1
        print("inside")
        #^^^^^^^^^^^^^^ graph-break GB0059
    return x


for f in (under_no_grad, in_enter, in_generator_based, two_managers, suppressed):
    f(torch.ones(4, 4))
