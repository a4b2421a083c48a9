"""Breaks in generators that compiled code runs over, and a compiled function that is one."""
import torch


def rows(x):
    for i, row in enumerate(x):
        print("row", i)
        #^^^^^^^^^^^^^^ graph-break GB0059
        yield row


def halves(x):
    yield x[: x.shape[0] // 2].sum().item()
    #     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ graph-break GB0124
    yield x[x.shape[0] // 2 :]


@torch.compile
def runs_over(x):
#   ^^^^^^^^^ skipped-frame skipped-by-break
    total = 0
    for row in rows(x):
        total = total + row
    return total


@torch.compile
def unpacks(x):
#   ^^^^^^^ skipped-frame skipped-by-break
    first, second = halves(x)
    return second * first


@torch.compile
def sums(x):
#   ^^^^ skipped-frame skipped-by-break
    return x * sum(float(v) for v in x[0])
    #             ^^^^^^^^^^^^^^^^^^^^^^^^ graph-break GB8335
    #              ^^^^^^^^ graph-break GB0124


@torch.compile
def steps(x):
#   ^^^^^ graph-break GB0003
    for i in range(2):
        yield x + i


for f in (runs_over, unpacks, sums):
    f(torch.ones(4, 3))
list(steps(torch.ones(3)))
