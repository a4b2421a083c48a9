"""Breaks inside comprehensions of every sort."""
import torch


@torch.compile
def in_list(x):
    values = [row.sum().item() for row in x]
    #         ^^^^^^^^^^^^^^^^ graph-break GB0124
    return x * values[0]


@torch.compile
def in_dict(x):
#   ^^^^^^^ skipped-frame skipped-by-break
    values = {i: row.max().item() for i, row in enumerate(x)}
    #        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ graph-break GB8335
    #            ^^^^^^^^^^^^^^^^ graph-break GB0124
    return x * values[1]


@torch.compile
def in_condition(x):
    rows = [row for row in x if row.sum() > 0]
    #                           ^^^^^^^^^^^^^ graph-break GB0170
    return torch.stack(rows)


@torch.compile
def nested(x):
    values = [[float(v) for v in row] for row in x]
    #          ^^^^^^^^ graph-break GB0124
    return x + values[0][1]


@torch.compile
def call_in_it(x):
    rows = [show(row) for row in x]
    return rows[0]


def show(row):
    print(row.shape)
    #^^^^^^^^^^^^^^^ graph-break GB0059 ×2
    return row + 1


for f in (in_list, in_dict, in_condition, nested, call_in_it):
    f(torch.ones(2, 3))
