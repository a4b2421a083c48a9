"""Sizes marked dynamic by hand; a helper in which one of them is fixed."""
import torch


def pad_to_eight(x):
    if x.shape[0] < 8:
        return torch.cat([x, torch.zeros(8 - x.shape[0])])
    return x


@torch.compile
def f(x):
    y = pad_to_eight(x)
    return y.view(2, 4) * 2


@torch.compile
def maybe(x):
    return x.view(3, 2)
    #      ^^^^^^^^^^^^ specialization specialize-value


x = torch.ones(6)
torch._dynamo.maybe_mark_dynamic(x, 0)
f(x)
y = torch.ones(6)
torch._dynamo.maybe_mark_dynamic(y, 0)
maybe(y)
