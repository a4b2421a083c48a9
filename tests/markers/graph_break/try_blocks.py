"""Breaks in try, except, else and finally."""
import torch


@torch.compile
def in_try(x):
#   ^^^^^^ skipped-frame skipped-by-break
    try:
        x = x.sin()
        print("try")
        #^^^^^^^^^^^ graph-break GB0059
    except ValueError:
        x = x + 1
    return x * 2


@torch.compile
def in_except(x):
#   ^^^^^^^^^ skipped-frame skipped-by-break
    y = x.cos()
    try:
        raise KeyError("made")
    except KeyError:
        print("except")
        #^^^^^^^^^^^^^^ graph-break GB0059
    return y * 2


@torch.compile
def in_else(x):
    try:
        y = x.cos()
    except KeyError:
        y = x
    else:
        y = y * y.sum().item()
        #       ^^^^^^^^^^^^^^ graph-break GB0124
    return y


@torch.compile
def in_finally(x):
    try:
        y = x.cos()
    finally:
        print("finally")
        #^^^^^^^^^^^^^^^ graph-break GB0059
    return y * 2


for f in (in_try, in_except, in_else, in_finally):
    f(torch.ones(4))
