"""What advice turns a branch, a print and a shape that data decides into: nothing is left to report."""
import torch


@torch.compile(fullgraph=True)
def f(x):
    y = torch.where(x.sum() > 0, x + 1, x - 1)
    z = torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))
    torch._assert_async(x.any())
    return y + z, torch.where(x > 0, x, 0.0)


f(torch.ones(4))
f(-torch.ones(4))
