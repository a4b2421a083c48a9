"""Guards on PyTorch's own state: they watch nothing that the function names, so they stand at its name."""
import torch


@torch.compile
def by_grad_mode(x):
#   ^^^^^^^^^^^^ recompilation recompile-global-state
    return x * 2


@torch.compile
def by_default_dtype(x):
#   ^^^^^^^^^^^^^^^^ recompilation recompile-global-state
    return x + torch.ones(4)


@torch.compile
def by_autocast(x):
#   ^^^^^^^^^^^ recompilation recompile-global-state
    return x @ x


@torch.compile
def by_inference_mode(x):
#   ^^^^^^^^^^^^^^^^^ recompilation recompile-global-state
    return x * 3


@torch.compile
def by_threads(x):
#   ^^^^^^^^^^ recompilation recompile-global-state
    return x * 4


@torch.compile
def by_deterministic(x):
#   ^^^^^^^^^^^^^^^^ recompilation recompile-global-state
    return x * 5


x = torch.ones(4, 4)
by_grad_mode(x)
with torch.no_grad():
    by_grad_mode(x)
by_default_dtype(x)
torch.set_default_dtype(torch.float64)
by_default_dtype(x)
torch.set_default_dtype(torch.float32)
by_autocast(x)
with torch.autocast("cpu", dtype=torch.bfloat16):
    by_autocast(x)
by_inference_mode(x)
with torch.inference_mode():
    by_inference_mode(x)
by_deterministic(x)
torch.use_deterministic_algorithms(True)
by_deterministic(x)
torch.use_deterministic_algorithms(False)
by_threads(x)
torch.set_num_threads(torch.get_num_threads() + 1)
by_threads(x)
