"""With the settings that let Dynamo trace values and shapes of data, .item() and nonzero break nothing."""
import torch

torch._dynamo.config.capture_scalar_outputs = True
torch._dynamo.config.capture_dynamic_output_shape_ops = True


@torch.compile
def f(x):
    n = x.sum().item()
    rows = x.nonzero()
    torch._check(rows.shape[0] >= 1)
    return rows.sum() * n


f(torch.ones(4))
f(torch.arange(4.0))
