# outcome: script-error
"""With fullgraph=True the limit is an error that the caller gets."""
import torch

torch._dynamo.config.recompile_limit = 3


@torch.compile(fullgraph=True)
def f(x, name):
#   ^ recompile-limit GB0039
#        ^^^^ recompilation recompile-value ×2
    return x + len(name)


for n in range(6):
    f(torch.ones(4), "a" * n)
