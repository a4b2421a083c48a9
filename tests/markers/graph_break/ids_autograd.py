"""Ids of gradients, hooks, parameters, subclasses and other machinery of PyTorch used inside compiled code."""
import torch


@torch.compile
def backward(x, w):
    loss = (x * w).sum()
    loss.backward()
    #^^^^^^^^^^^^^^ graph-break GB0123
    return loss


@torch.compile
def grad(x, w):
    loss = (x * w).sum()
    return torch.autograd.grad(loss, w)[0]
    #      ^^^^^^^^^^^^^^^^^^^^^^^^^^^^ graph-break GB9186


@torch.compile
def requires_grad(x, w):
    y = x.clone()
    y.requires_grad_()
    #^^^^^^^^^^^^^^^^^ graph-break GB8985
    return y * 2


@torch.compile
def parameter(x, w):
    p = torch.nn.Parameter(x.clone())
    #   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ graph-break GB0264
    return p * 2


@torch.compile
def module(x, w):
    layer = torch.nn.Linear(4, 4)
    #       ^^^^^^^^^^^^^^^^^^^^^ graph-break GB0264
    return layer(x)


@torch.compile
def hooked(x, w):
    y = w * 2
    y.register_hook(lambda g: print("grad"))
    #                         ^^^^^^^^^^^^^ graph-break GB0059
    return y
    #^^^^^^^ graph-break GB0013


@torch.compile
def rnn(x, w):
#   ^^^ skipped-frame skipped-by-break
    return LSTM(x.view(1, 1, 4))[0]
    #      ^^^^^^^^^^^^^^^^^^^^^ graph-break GB0014 ×2


@torch.compile
def generator(x, w):
    g = torch.Generator().manual_seed(1)
    #   ^^^^^^^^^^^^^^^^^ graph-break GB0363
    #   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ graph-break GB7650
    return x + torch.rand(4, generator=g)
    #          ^^^^^^^^^^^^^^^^^^^^^^^^^^ graph-break GB0055


@torch.compile
def seeded(x, w):
    torch.manual_seed(0)
    #^^^^^^^^^^^^^^^^^^^ graph-break GB0007
    return x + torch.rand(4)


@torch.compile
def sparse(x, w):
    return x.to_sparse().sum()
    #      ^^^^^^^^^^^^^ graph-break GB0277
    #      ^^^^^^^^^^^^^^^^^ graph-break GB0015


@torch.compile
def resized(x, w):
    return x.clone().resize_(2)
    #      ^^^^^^^^^^^^^^^^^^^^ graph-break GB0126


@torch.compile
def set_state(x, w):
    torch.set_default_dtype(torch.float32)
    return x + 1


class Loud(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        print("forward")
        #^^^^^^^^^^^^^^^ graph-break GB0059 ×2
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


@torch.compile
def own_function(x, w):
    return Loud.apply(w)


class Wrapped(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        torch._dynamo.graph_break()
        #^^^^^^^^^^^^^^^^^^^^^^^^^^ graph-break GB0025 ×2
        return super().__torch_function__(func, types, args, kwargs or {})


@torch.compile
def subclass(x, w):
#   ^^^^^^^^ skipped-frame skipped-by-break
    return x.as_subclass(Wrapped) + 1


@torch.compile
def profiled(x, w):
    with torch.profiler.profile():
    #    ^^^^^^^^^^^^^^^^^^^^^^^^ pytorch-warning profiler-function-will-be-ignored
        return x + 1


LSTM = torch.nn.LSTM(4, 4)
for f in (backward, grad, requires_grad, parameter, module, hooked, rnn, generator, seeded, sparse, resized, set_state, own_function, subclass, profiled):
    try:
        f(torch.arange(4.0), torch.ones(4, requires_grad=True))
    except Exception as error:
        print(f.__name__, type(error).__name__, str(error)[:100])
