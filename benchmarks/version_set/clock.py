# change: 2.13 2.15 torch._dynamo.variables.functions.SkipFunctionVariable.call_function
"""`time.perf_counter()` while tracing breaks by another rule."""

import time

import torch


@torch.compile(backend="eager")
def timed(x):
    return x + (time.perf_counter() > 0)


timed(torch.ones(4))
