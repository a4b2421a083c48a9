"""Breaks inside f-strings, behind a walrus, in conditional expressions and in boolean ones."""
import torch


@torch.compile
def f_string(x):
    note = f"sum={x.sum().item():.2f} shape={x.shape}"
    #             ^^^^^^^^^^^^^^ graph-break GB0124
    return x + len(note)


@torch.compile
def f_string_of_tensor(x):
#   ^^^^^^^^^^^^^^^^^^ skipped-frame skipped-by-break
    note = f"the tensor is {x}"
    return x + len(note)
    #          ^^^^^^^^^ graph-break GB0088


@torch.compile
def walrus(x):
    if (n := x.max().item()) > 2:
    #        ^^^^^^^^^^^^^^ graph-break GB0124
        return x * n
    return x


@torch.compile
def walrus_in_loop(x):
    while (y := x.sum()) < 30:
    #     ^^^^^^^^^^^^^^^^^^^ graph-break GB0170 ×2
        x = x * 2
    return y


@torch.compile
def conditional(x):
    return x + 1 if x.sum() > 0 else x - 1
    #               ^^^^^^^^^^^ graph-break GB0170


@torch.compile
def conditional_bare(x):
    return x + 1 if x.any() else x - 1
    #      ^^^^^^^^^^^^^^^^^^^^^^^^^^^ graph-break GB0170


@torch.compile
def either(x):
    return x.any() or x.all()
    #      ^^^^^^^^^^^^^^^^^^ graph-break GB0170


@torch.compile
def negated(x):
    if not x.any():
    #  ^^^^^^^^^^^ graph-break GB0170
        return x
    return x + 1


@torch.compile
def chained_comparison(x):
    if 0 < x.sum() < 100:
    #  ^^^^^^^^^^^^^^^^^ graph-break GB0170 ×2
        return x + 1
    return x


for f in (f_string, f_string_of_tensor, walrus, walrus_in_loop, conditional, conditional_bare, either, negated, chained_comparison):
    f(torch.arange(4.0))
