"""A generator function that must be one graph, as a function and as a method; one that is not asked to be compiled."""
import torch


@torch.compile(fullgraph=True)
def steps(x):
#   ^^^^^ compile-error GB0003
    for i in range(2):
        yield x + i


class Net(torch.nn.Module):
    @torch.compile
    def layers(self, x):
    #   ^^^^^^ graph-break GB0003
        yield x
        yield x + 1

    def forward(self, x):
        return list(self.layers(x))


def below(x):
    for i in range(2):
        print(i)
        #^^^^^^^ graph-break GB0059
        yield x.sin()


@torch.compile
def breaks_above(x):
    torch._dynamo.graph_break()
    #^^^^^^^^^^^^^^^^^^^^^^^^^^ graph-break GB0025
    return list(below(x))


try:
    list(steps(torch.ones(2)))
except Exception as error:
    print(type(error).__name__)
Net()(torch.ones(2))
breaks_above(torch.ones(2))
