"""A dataclass becomes a dict."""

import dataclasses
import torch

@dataclasses.dataclass
class State:
    hidden: torch.Tensor
    scale: float


def target(x):
    state = State(x * 2, 2.0)
    fields = dataclasses.asdict(state)
    return fields["hidden"] * fields["scale"]


def make(size=8, dtype=torch.float32):
    return (torch.randn(size, 4, dtype=dtype),)


if __name__ == "__main__":
    torch.manual_seed(0)
    compiled = torch.compile(target)
    compiled(*make())
