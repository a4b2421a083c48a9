# outcome: script-error
"""Under the stance fail_on_recompile a call that fits no compile is an error at the call."""
import torch


@torch.compile
def f(x):
    return x * 2


def run(n):
    return f(torch.ones(n))
    #      ^^^^^^^^^^^^^^^^ guard-failure fail-on-recompile


run(4)
with torch.compiler.set_stance("fail_on_recompile"):
    run(4)
    try:
        run(5)
    except RuntimeError:
        pass
    f(
    #^ to +2:5 guard-failure fail-on-recompile
        torch.ones(4, dtype=torch.float64),
    )
