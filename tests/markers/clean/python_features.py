"""Python that Dynamo traces: closures, dataclasses, enums, kwargs, generators, sorting of numbers, f-strings of shapes."""
import dataclasses
import enum
import functools
import math

import torch


class Kind(enum.Enum):
    SUM = "sum"
    MEAN = "mean"


@dataclasses.dataclass(frozen=True)
class Config:
    kind: Kind
    factor: float = 2.0


def reduce(x, kind):
    match kind:
        case Kind.SUM:
            return x.sum()
        case Kind.MEAN:
            return x.mean()


def pieces(x):
    for i in range(x.shape[0]):
        yield x[i]


@torch.compile
def f(x, config, **weights):
    label = f"{config.kind.value}-{x.shape[0]}"
    total = functools.reduce(torch.add, pieces(x)) * math.sqrt(len(label))
    order = sorted(weights, key=lambda name: -len(name))
    for name in order:
        total = total + weights[name] * config.factor
    try:
        total = total + {"a": 1}["b"]
    except KeyError:
        total = total - 1
    with torch.no_grad():
        total = total.detach()
    assert x.ndim == 2, "two dimensions"
    return {"total": total, "reduced": reduce(x, config.kind)}


f(torch.ones(3, 4), Config(Kind.SUM), a=torch.ones(4), bb=torch.ones(4))
f(torch.ones(3, 4), Config(Kind.SUM), a=torch.ones(4), bb=torch.ones(4))
