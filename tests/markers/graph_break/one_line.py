"""Several breaks on one line: each has its own range, and what has one range and cause is one finding."""
import torch


@torch.compile
def two_items(x):
    return x * x.min().item() + x.max().item()
    #          ^^^^^^^^^^^^^^ graph-break GB0124
    #                           ^^^^^^^^^^^^^^ graph-break GB0124


@torch.compile
def same_helper_twice(x):
    return value_of(x) + value_of(x + 1)


def value_of(x): return x.sum().item()
#                       ^^^^^^^^^^^^^^ graph-break GB0124 ×3


@torch.compile
def two_statements(x):
    print(1); print(2)
    #^^^^^^^ graph-break GB0059
    #         ^^^^^^^^ graph-break GB0059
    return x + 1


@torch.compile
def two_causes(x):
    print(x.sum().item()); y = x[x > 0]
    #^^^^^^^^^^^^^^^^^^^^ graph-break GB0059
    #     ^^^^^^^^^^^^^^ graph-break GB0124
    #                          ^^^^^^^^ graph-break GB0036
    return y


@torch.compile
def chained_calls(x):
    return x.sort().values.unique().nonzero().float().mean().item() * x
    #      ^^^^^^^^^^^^^^^^^^^^^^^^ graph-break GB0036
    #      ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ graph-break GB0036
    #      ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ graph-break GB0124


for f in (two_items, same_helper_twice, two_statements, two_causes, chained_calls):
    f(torch.arange(4.0))
