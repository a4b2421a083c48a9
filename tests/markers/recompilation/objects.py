"""Other objects of the same sort: functions, modules, types, tensors that are one and the same."""
import torch


@torch.compile
def by_function(x, f):
#                  ^ recompilation recompile-object
    return f(x) + 1


@torch.compile
def by_module(x, layer):
#                ^^^^^ recompilation recompile-type
    return layer(x) + 1


@torch.compile
def by_type(x, y):
#              ^ recompilation recompile-value
    return x + y


class Mine(torch.Tensor):
    pass


@torch.compile
def by_subclass(x):
#               ^ recompilation recompile-type
    return x + 1


@torch.compile
def by_aliasing(x, y):
#               ^ recompilation recompile-aliasing
    x.add_(1)
    return y * 2


@torch.compile
def by_aliasing_back(x, y):
#                    ^ recompilation recompile-aliasing
    x.add_(1)
    return y * 2


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.act = torch.nn.ReLU()

    def forward(self, x):
        return self.act(x) + 1
        #      ^^^^^^^^ recompilation recompile-type


x, y = torch.ones(4), torch.ones(4)
by_function(x, torch.sin)
by_function(x, torch.cos)
by_module(x, torch.nn.ReLU())
by_module(x, torch.nn.GELU())
by_type(x, 1)
by_type(x, 1.0)
by_subclass(x)
by_subclass(x.as_subclass(Mine))
by_aliasing(x, y)
by_aliasing(x, x)
by_aliasing_back(x, x)
by_aliasing_back(x, y)
net = Net()
compiled = torch.compile(net)
compiled(x)
net.act = torch.nn.GELU()
compiled(x)
