"""What changes inside *args, **kwargs, lists, dicts and objects."""
import dataclasses

import torch


@torch.compile
def args(*tensors):
#         ^^^^^^^ recompilation recompile-size
#         ^^^^^^^ recompilation recompile-value
    return sum(t.sum() for t in tensors)


@torch.compile
def kwargs(**tensors):
#            ^^^^^^^ recompilation recompile-value
    return sum(t.sum() for t in tensors.values())


@torch.compile
def listed(tensors):
#          ^^^^^^^ recompilation recompile-value
    total = tensors[0]
    for t in tensors[1:]:
        total = total + t
    return total


@torch.compile
def dictionary(batch):
#              ^^^^^ recompilation recompile-size
    return batch["x"] + 1


@torch.compile
def dictionary_keys(batch):
#                   ^^^^^ recompilation recompile-value
    return sum(batch[key].sum() for key in batch)


@dataclasses.dataclass
class Config:
    factor: int
    name: str = "c"


@torch.compile
def configured(x, config):
#                 ^^^^^^ recompilation recompile-value
    return x * config.factor


x, y = torch.ones(4), torch.ones(5)
args(x)
args(y)
args(x, x)
kwargs(a=x)
kwargs(b=x)
listed([x, x])
listed([x, x, x])
dictionary({"x": x})
dictionary({"x": y})
dictionary_keys({"a": x})
dictionary_keys({"a": x, "b": x})
configured(x, Config(2))
configured(x, Config(3))
