# outcome: script-error
"""Where a setting makes the limit an error, the finding is one, too."""
import torch

torch._dynamo.config.recompile_limit = 2
torch._dynamo.config.fail_on_recompile_limit_hit = True


@torch.compile
def f(x, name):
#   ^ recompile-limit GB0039
#        ^^^^ recompilation recompile-value
    return x + len(name)


for n in range(6):
    f(torch.ones(4), "a" * n)
