"""Breaks in loops: in the body, in the condition, in what is run over, in the branch that ends it."""
import torch


@torch.compile
def in_body(x):
#   ^^^^^^^ skipped-frame skipped-by-break
    for i in range(3):
        x = x + i
        print(i)
        #^^^^^^^ graph-break GB0059
    return x


@torch.compile
def in_condition(x):
    while x.sum() < 20:
    #     ^^^^^^^^^^^^ graph-break GB0170 ×2
        x = x * 2
    return x


@torch.compile
def in_iterable(x):
    total = 0
    for value in x.tolist():
    #            ^^^^^^^^^^ graph-break GB0109
        total += value
    return x * total


@torch.compile
def in_break(x):
#   ^^^^^^^^ skipped-frame skipped-by-break
    for i in range(3):
        x = x + 1
        if x.max() > 2:
        #  ^^^^^^^^^^^ graph-break GB0170
            break
    return x


@torch.compile
def in_else(x):
    for _ in range(2):
        x = x + 1
    else:
        print("done")
        #^^^^^^^^^^^^ graph-break GB0059
    return x


@torch.compile
def nested(x):
#   ^^^^^^ skipped-frame skipped-by-break
    for _ in range(2):
        for j in range(2):
            x = x + float(x.max()) * j
            #       ^^^^^^^^^^^^^^ graph-break GB0124
    return x


for f in (in_body, in_condition, in_iterable, in_break, in_else, nested):
    f(torch.ones(3))
