# Source: https://github.com/pytorch/pytorch/issues/117265 (a comment: forward is replaced after the first call)
import torch

layer = torch.nn.Linear(3, 3, bias=False)
layer.weight = torch.nn.Parameter(torch.eye(3))


@torch.compile
def f(x):
    return layer(x) + 1


x = torch.ones(3)
print(f(x).tolist())
layer.forward = lambda t: 3.0 * t
print("now", f(x).tolist(), "right", (layer(x) + 1).tolist())
