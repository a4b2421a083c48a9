"""Other stances forbid nothing: what does not fit runs as plain Python, without an error."""
import torch


@torch.compile
def f(x):
    return x * 2


f(torch.ones(4))
with torch.compiler.set_stance("eager_on_recompile"):
    f(torch.ones(5))
with torch.compiler.set_stance("force_eager"):
    f(torch.ones(6))
