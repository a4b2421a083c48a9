# outcome: script-error
"""With error_on_recompile the call that would compile again is an error of the compilation."""
import torch

torch._dynamo.config.error_on_recompile = True


@torch.compile
def f(x, n):
    return x.repeat(n)


f(torch.ones(4), 2)
f(torch.ones(4), 3)
#^^^^^^^^^^^^^^^^^^ compile-error RecompileError
