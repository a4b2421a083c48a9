"""Expressions over several lines: the range goes from where they begin to where they end."""
import torch


@torch.compile
def arguments(x):
    y = x.sin()
    print(
    #^^^^^ to +3:5 graph-break GB0059
        "shape",
        y.shape,
    )
    return y


@torch.compile
def condition(x):
    if (
        x.sum() > 0
        #^^^^^^^^^^ graph-break GB0170
        and x.shape[0] == 4
    ):
        x = x + 1
    return x


@torch.compile
def chain(x):
    return (
        x.sin()
        .sum()
        .item()
         #^^^^^ graph-break GB0124
        * x
    )


@torch.compile
def inner_argument(x):
    return torch.add(
        x,
        float(
        #^^^^^ to +2:9 graph-break GB0124
            x.max()
        ),
    )


@torch.compile
def bare_condition(x):
    if (
    #^^^ to +1:15 graph-break GB0170
        x.any()
    ):
        x = x + 1
    return x


@torch.compile
def bare_condition_with_long_body(x):
    if x.any():
    #  ^^^^^^^ graph-break GB0170
        x = x + 1
        y = x * 2
    elif x.shape[0]:
        y = x
    return y


@torch.compile
def subscript(x):
    return x[
    #      ^^ to +2:5 graph-break GB0036
        x > 0
    ]


for f in (arguments, condition, chain, inner_argument, bare_condition, bare_condition_with_long_body, subscript):
    f(torch.ones(4))
