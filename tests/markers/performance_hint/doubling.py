# lane: deep
"""Each step uses the results of two steps before, and Inductor inlines them all: the kernel doubles with each step."""
import torch


@torch.compile
def ladder(a, b, steps):
#                ^^^^^ recompilation recompile-value
    seq = [a, b]
    for _ in range(steps):
    #        ^^^^^^^^^^^^ specialization specialize-value
        seq.append(seq[-1] + seq[-2])
        seq.append(seq[-2] * seq[-3])
        #^^^^^^^^^^^^^^^^^^^^^^^^^^^^ performance-hint inlined-expression
    return seq[-1] + seq[-2]


ladder(torch.ones(3), torch.ones(3), 4)
ladder(torch.ones(3), torch.ones(3), 8)
