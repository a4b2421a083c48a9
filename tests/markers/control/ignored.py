"""Comments that hide findings on their lines, by code, by kind or all, and comments that hide nothing."""
import torch


@torch.compile
def f(x):
    print("a")  # irscope: ignore[GB0059] wanted here
    print("b")  # irscope: ignore
    print("c")  # irscope: ignore[graph-break]
    print("d")  # irscope: ignore[GB0124]
    #^^^^^^^^^ graph-break GB0059
    #           ^^^^^^^^^^^^^^^^^^^^^^^^^ unused-ignore unused-ignore
    print("e")  # irscope: ignore[GB0124, GB0059] one of two
    print("# irscope: ignore[GB0059]")
    #^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ graph-break GB0059
    y = x + 1  # irscope: ignore[GB0059] gone since long
    #          ^^^^^^^^^^^^^^^^^^^^^^^^^ unused-ignore unused-ignore
    z = y * 2  # irscope: ignore[fallback-no-lowering] can only be judged in the deep lane
    return z  # irscope: ignore


@torch.compile
def g(x, n):  # irscope: ignore[recompile-value]
    print(
        n,
    )  # irscope: ignore[GB0059] behind a long call
    return x * n
    #          ^ recompilation recompile-value


f(torch.ones(3))
g(torch.ones(3), 2)
g(torch.ones(3), 3)
