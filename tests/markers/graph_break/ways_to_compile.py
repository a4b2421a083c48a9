"""The same break by every way to compile something: decorator, call, method, module, module.compile(), nested."""
import torch


def shout(x):
    print("!", x.shape)
    #^^^^^^^^^^^^^^^^^^ graph-break GB0059 ×3
    return x + 1


@torch.compile()
def by_decorator(x):
    return shout(x)


class Model(torch.nn.Module):
    @torch.compile
    def helper(self, x):
        n = x.max().item()
        #   ^^^^^^^^^^^^^^ graph-break GB0124
        return x * n

    def forward(self, x):
        y = x.sin()
        torch._dynamo.graph_break()
        #^^^^^^^^^^^^^^^^^^^^^^^^^^ graph-break GB0025
        return y + 1


@torch.compile(dynamic=False)
def outer(x):
    return by_decorator(x) * 2


model = Model()
x = torch.arange(4.0)
by_decorator(x)
outer(x)
model.helper(x)
torch.compile(model)(x)
model.compile()
model(x)
torch.compile(model.forward)(x)
torch.compile(Model.helper)(model, x)
