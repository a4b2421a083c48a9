"""All instances of a class share the limit of its method; a function that is made anew has one of its own."""
import torch

torch._dynamo.config.recompile_limit = 2


class Layer(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.n = n

    def forward(self, x):
    #   ^^^^^^^ recompile-limit GB0039
        return x * self.n
        #          ^^^^^^ recompilation recompile-value


def make():
    @torch.compile
    def inner(x, k):
    #            ^ recompilation recompile-value
        return x.repeat(k)

    return inner


for n in range(2, 7):
    layer = Layer(n)
    torch.compile(layer)(torch.ones(3))
inner = make()
for k in ("one", "two", "three", "four"):
    try:
        inner(torch.ones(2), (len(k), 1))
    except RuntimeError:
        pass
