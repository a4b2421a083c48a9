"""Breaks in a wrapper that a decorator made, in what it wraps, and below several decorators."""
import functools

import torch


def logged(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        print("calling", function.__name__)
        #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ graph-break GB0059 ×3
        #                ^^^^^^^^ recompilation recompile-object
        return function(*args, **kwargs)
        #      ^^^^^^^^ recompilation recompile-object

    return wrapper


def twice(function):
    @functools.wraps(function)
    def wrapper(x):
        return function(function(x))

    return wrapper


@logged
def add(x):
    return x + 1


@twice
def scale(x):
    return x * x.max().item()
    #          ^^^^^^^^^^^^^^ graph-break GB0124 ×4
    #          ^^^^^^^^^^^^^^ recompilation recompile-value


@torch.compile
@logged
def outermost(x):
    return x - 1


@torch.compile
def f(x):
    return scale(add(x))


@torch.compile
@torch.no_grad()
def without_grad(x):
    y = x.sin()
    print(y.shape)
    #^^^^^^^^^^^^^ graph-break GB0059 ×2
    return y


f(torch.ones(4))
outermost(torch.ones(4))
without_grad(torch.ones(4))
