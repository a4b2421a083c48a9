"""Values that come from a GPU to the CPU: there need not be one, since fake tensors can say that they lie on it."""
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

torch._dynamo.config.capture_scalar_outputs = True


@torch.compile
def copied(x):
    y = x * 2
    return y.cpu() + y.to("cpu").sum()
    #      ^^^^^^^ host-sync host-sync-cpu
    #                ^^^^^^^^^^^ host-sync host-sync-to


@torch.compile
def read(x):
    scale = (x + 1).sum().item()
    #       ^^^^^^^^^^^^^^^^^^^^ host-sync host-sync-item
    return x * scale


@torch.compile
def stays(x):
    return x.to(torch.float16) * 2


@torch.compile
def on_the_cpu(x):
    return x.cpu() * x.sum().item()


with FakeTensorMode(allow_non_fake_inputs=True):
    x = torch.ones(4, device="cuda")
    print(copied(x).device, stays(x).device)
    try:
        read(x)
    except Exception as error:  # a fake tensor has no value to be read when the graph runs
        print(type(error).__name__)
on_the_cpu(torch.ones(4))
