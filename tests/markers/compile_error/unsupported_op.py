"""A custom operator without a fake implementation, a torch.cond whose branches differ, a break in a generator."""
import torch


@torch.library.custom_op("markers::halve", mutates_args=())
def halve(x: torch.Tensor) -> torch.Tensor:
    return x / 2


@torch.compile(fullgraph=True)
def without_fake(x):
    y = x + 1
    return halve(y) * 2
    #      ^^^^^^^^ compile-error GB4315


@torch.compile
def without_fake_or_fullgraph(x):
    y = x + 1
    return halve(y) * 2
    #      ^^^^^^^^ compile-error GB4315


@torch.compile
def conditional(x):
    return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: (x, x), (x,))
    #      ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ compile-error GB0040


@torch.compile(fullgraph=True)
def generator(x):
    return [v for v in made(x)]


def made(x):
    yield x
    torch._dynamo.graph_break()
    #^^^^^^^^^^^^^^^^^^^^^^^^^^ compile-error GB0025
    yield x + 1


for f in (without_fake, without_fake_or_fullgraph, conditional, generator):
    try:
        f(torch.ones(4))
    except Exception as error:
        print(type(error).__name__, str(error)[:80])
