"""Breaks in lambdas, nested functions, closures, partials, bound methods and recursion."""
import functools

import torch

double = lambda x: x * x.max().item()
#                      ^^^^^^^^^^^^^^ graph-break GB0124 ×2


def power(x, exponent, note=""):
    print(note, exponent)
    #^^^^^^^^^^^^^^^^^^^^ graph-break GB0059 ×2
    return x**exponent


square = functools.partial(power, exponent=2)


@torch.compile
def calls_lambda(x):
    return double(x) + 1


@torch.compile
def calls_partial(x):
    return square(x + 1, note="squared")


def make(limit):
    def clipped(x):
        if x.sum() > limit:
        #  ^^^^^^^^^^^^^^^ graph-break GB0170
            x = x / 2
        return x

    return clipped


compiled_closure = torch.compile(make(3))


@torch.compile
def with_nested(x):
    def inner(y):
        return y + float(y.mean())
        #          ^^^^^^^^^^^^^^^ graph-break GB0124 ×2

    return inner(x) * 2


@torch.compile
def countdown(x, n):
    if n == 0:
        print("bottom")
        return x
    return countdown_more(x + 1, n)


def countdown_more(x, n):
#                     ^ recompilation recompile-value ×2
    if n == 0:
    #  ^^^^^^ specialization specialize-zero-one ×2
        torch._dynamo.graph_break()
        #^^^^^^^^^^^^^^^^^^^^^^^^^^ graph-break GB0025 ×4
        return x
    return countdown_more(x + 1, n - 1)


compiled_lambda = torch.compile(lambda x: (x + 1) * x.sum().item())
#                                                   ^^^^^^^^^^^^^^ graph-break GB0124

for f in (calls_lambda, calls_partial, compiled_closure, with_nested, compiled_lambda):
    f(torch.ones(4))
countdown(torch.ones(4), 2)
